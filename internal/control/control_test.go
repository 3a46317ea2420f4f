package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// socketPath is the default path of a process's control socket, in a folder of the test's own.
func socketPath(t *testing.T, pid int) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "memtrace-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return filepath.Join(folder, fmt.Sprintf("%d.sock", pid))
}

// silence means no packet until the client is gone.
const silence = "silence"

// serve answers this process's requests as its library would: each by the packets that answer returns for it.
func serve(t *testing.T, answer func(request string) []string) {
	t.Helper()
	serveAt(t, socketPath(t, os.Getpid()), answer)
}

func serveAt(t *testing.T, path string, answer func(request string) []string) {
	t.Helper()
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			connection, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			answerOne(connection, answer)
		}
	}()
}

func answerOne(connection *net.UnixConn, answer func(request string) []string) {
	defer connection.Close()
	request := make([]byte, largestPacket)
	n, err := connection.Read(request)
	if err != nil {
		return
	}
	for _, packet := range answer(string(request[:n])) {
		if packet == silence {
			connection.Read(request) // until the other one hangs up
			return
		}
		if _, err := connection.Write([]byte(packet)); err != nil {
			return
		}
	}
}

func says(packets ...string) func(string) []string { return func(string) []string { return packets } }

// impatient makes silence short.
func impatient(t *testing.T) {
	before := patience
	patience = 100 * time.Millisecond
	t.Cleanup(func() { patience = before })
}

// A process's answer is read line by line; what is not an answer of the library's is an error, never a state.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		says    string
		want    Answer
		problem string
	}{
		{"state=recording\ntrace=/a/b.bin", Answer{State: Recording, Trace: "/a/b.bin"}, ""},
		{"state=recording\ntrace=/a=b/c.bin\nstart=late\nheld=4096\nstood_ns=1500000\n",
			Answer{State: Recording, Trace: "/a=b/c.bin", Start: StartedLate, Held: 4096,
				Stood: 1500 * time.Microsecond}, ""},
		{"state=asleep\nof=a later version", Answer{State: Asleep}, ""},
		{"state=idle\nheld=many\nstood_ns=99999999999999999999", Answer{State: Idle, Stood: 1<<63 - 1}, ""},
		{"state=ended\nerror=it is not recording", Answer{State: Ended}, "it is not recording"},
		{"", Answer{}, "does not answer"},
		{"\n", Answer{}, "makes no sense"},
		{"state", Answer{}, "makes no sense"},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", Answer{}, "makes no sense"},
		{strings.Repeat("x", largestPacket), Answer{}, "makes no sense"},
		{"\x00\xff=\x1b", Answer{}, "makes no sense"},
	} {
		t.Run(fmt.Sprintf("%.20q", c.says), func(t *testing.T) {
			serve(t, func(request string) []string {
				if request != "mark x" {
					t.Errorf("asked %q", request)
				}
				if c.says == "" {
					return nil
				}
				return []string{c.says}
			})
			answer, err := Request(os.Getpid(), "mark x")
			if c.problem == "" && err != nil || c.problem != "" &&
				(err == nil || !strings.Contains(err.Error(), c.problem)) || answer != c.want {
				t.Errorf("%+v, %v; want %+v, %s", answer, err, c.want, c.problem)
			}
		})
	}
}

// A stopped process receives the request and does not answer.
func TestRequestTimeout(t *testing.T) {
	impatient(t)
	serve(t, says(silence))
	_, err := Request(os.Getpid(), "status")
	if err == nil || !strings.Contains(err.Error(), "may be stopped") || errors.Is(err, ErrNoSocket) {
		t.Errorf("%v", err)
	}
}

// One that ends hangs up before it has read the question.
func TestRequestHangsUp(t *testing.T) {
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socketPath(t, os.Getpid()), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if connection, err := listener.Accept(); err == nil {
			connection.Close()
		}
	}()
	if _, err := Request(os.Getpid(), "status"); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v", err)
	}
}

// A socket of the right name with another process as its listener is rejected: any user who may write to /tmp could
// have created it.
func TestRequestImpostor(t *testing.T) {
	path := socketPath(t, os.Getpid())
	impostor := exec.Command(os.Args[0], "-test.run=TestHelperImpostor")
	impostor.Env = append(os.Environ(), "IMPOSTOR="+path)
	out, err := impostor.StdoutPipe()
	if err == nil {
		err = impostor.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Wait()
	defer impostor.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it listens
		t.Fatal(err)
	}
	if answer, err := Request(os.Getpid(), "status"); !errors.Is(err, ErrNoSocket) {
		t.Errorf("%+v, %v", answer, err)
	}
	// Beside it the process itself is found.
	serve(t, says("state=recording"))
	if answer, err := Request(os.Getpid(), "status"); err != nil || answer.State != Recording {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestHelperImpostor is another process that answers for the test.
func TestHelperImpostor(t *testing.T) {
	path := os.Getenv("IMPOSTOR")
	if path == "" {
		t.Skip("a helper of TestRequestImpostor")
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("listening")
	for {
		connection, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		answerOne(connection, says("state=recording\ntrace=/forged.bin"))
	}
}

// A killed process's socket has no listener and is removed once it is old; other files are kept.
func TestRequestNoListener(t *testing.T) {
	path := socketPath(t, os.Getpid())
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	file := socketPath(t, os.Getpid())
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		if _, err := Request(os.Getpid(), "status"); !errors.Is(err, ErrNoSocket) {
			t.Errorf("%v", err)
		}
		if _, err := os.Lstat(path); (err == nil) != there {
			t.Errorf("%v; want it there: %v", err, there)
		}
		before := time.Now().Add(-time.Hour)
		for _, old := range []string{path, file} {
			if err := os.Chtimes(old, before, before); err != nil && there {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Lstat(file); err != nil {
		t.Error(err)
	}
	if _, err := Request(1<<22+1, "status"); !errors.Is(err, ErrNoSocket) { // no process has that number
		t.Errorf("%v", err)
	}
}
