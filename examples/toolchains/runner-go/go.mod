module example.com/runner

go 1.26.0
