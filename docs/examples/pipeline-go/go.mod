module example.dev/pipeline

go 1.24
