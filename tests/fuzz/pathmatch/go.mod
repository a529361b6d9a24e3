module pathmatch

go 1.26
