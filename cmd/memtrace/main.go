// Command memtrace records where a program's GPU memory goes and shows what it found. Each verb has a file of its own
// and does three things only: turn flags into options, call trace, analyzer and render, and turn errors into an exit
// status.
//
// Exit status: 0 success, 1 reserved for findings, 2 bad usage or input that cannot be read. The verb run ends with the
// status of the program it ran.
package main

import "os"

func main() {
	os.Exit(newApp(os.Stdin, os.Stdout, os.Stderr).execute(os.Args[1:]))
}
