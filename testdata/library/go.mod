module example.org/library

go 1.26

require memtrace v0.0.0

replace memtrace => ../..
