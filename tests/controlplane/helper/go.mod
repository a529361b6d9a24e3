module helper

go 1.26.0
