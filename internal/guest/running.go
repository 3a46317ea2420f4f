package guest

import (
	"bufio"
	"os/exec"
	"testing"
)

// Running starts a program that prints a line when it is ready and runs until its standard input ends, which is when
// the test does. It returns the program's first line.
func Running(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s ended before it was ready: %v", cmd.Path, err)
	}
	return line
}
