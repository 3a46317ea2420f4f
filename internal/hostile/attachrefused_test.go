package hostile

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where no thread waits, nothing is touched, and after the time is over the command says so.
func TestAttachWhereAllThreadsRun(t *testing.T) {
	t.Parallel()
	a := startAttached(t, nil, "spin")
	a.refused(t, "no thread of the process waits in a system call", "attach", "--timeout", "300ms", a.pid())
	maps, err := os.ReadFile("/proc/" + a.pid() + "/maps")
	if err != nil || strings.Contains(string(maps), "libmemtrace") {
		t.Errorf("the library is loaded, %v", err)
	}
	a.do(t, "alloc 3 5001")
	a.end(t)
}

// Each process that cannot be recorded gets one sentence that says what to do, and goes on.
func TestAttachRefusals(t *testing.T) {
	t.Parallel()
	a := startAttached(t, nil, "quiet")
	a.refused(t, "is not the number of a process", "attach", "x")
	a.refused(t, "give the whole path", "attach", "--library", "here.so", a.pid())
	a.refused(t, "cannot open shared object file", "attach", "--library", "/gone/libmemtrace.so", a.pid())
	a.refused(t, "is not CPython 3.14 or later", "attach", "--door", "python", a.pid())
	a.refused(t, "to record it, type: memtrace attach "+a.pid(), "ctl", a.pid(), "stop")
	a.attach(t) // for all that
	a.do(t, "alloc 4 5001")
	a.end(t)
	a.sizes(t, map[uint64]int{5001: 4})
	a.refused(t, "there is no process", "attach", a.pid())
	a.refused(t, "there is no process", "ctl", a.pid(), "status")
}

func TestAttachToDisabledLibrary(t *testing.T) {
	t.Parallel()
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	a := startProgram(t, program, run{preload: []string{""}}, []string{"MEMTRACE_DISABLE=1"}, "quiet")
	a.refused(t, "MEMTRACE_DISABLE is set", "attach", a.pid())
	b := startProgram(t, program, run{preload: []string{""}}, []string{"MEMTRACE_CONTROL=0"}, "quiet")
	b.refused(t, "has no control socket", "attach", b.pid())
	b.end(t)
	a.end(t)
}

const sleeper = `#include <stdio.h>
#include <unistd.h>
int main(void) {
  puts("ready");
  fflush(stdout);
  return getchar() == 'e' ? 0 : 1;
}
`

// A program without a loader, and one of another C library, are left alone.
func TestAttachToOtherKindsOfPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "sleeper.c")
	write(t, source, sleeper)
	for _, c := range []struct{ name, compiler, flag, says string }{
		{"static", "gcc", "-static", "is linked statically"},
		{"musl", "musl-gcc", "-O2", "uses musl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(dir, c.name)
			if text, err := exec.Command(c.compiler, c.flag, "-o", program, source).CombinedOutput(); err != nil {
				t.Skipf("%v\n%s", err, text)
			}
			a := startProgram(t, program, run{}, nil)
			a.refused(t, c.says, "attach", a.pid())
			a.ended = true
			a.input.Write([]byte("end\n"))
			if err := a.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that ends while it is attached to costs one sentence, whenever that is.
func TestAttachToProcessThatEnds(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		a := startAttached(t, nil, "storm")
		go func() { // as far on as the round says
			for maps := 0; maps < 3*round; maps++ {
				os.ReadFile("/proc/" + a.pid() + "/maps")
			}
			a.cmd.Process.Kill()
		}()
		said, well := a.memtrace(t, "attach", "-q", a.pid())
		if !well && (strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "memtrace attach: ")) {
			t.Errorf("round %d: it says %q", round, said)
		}
		a.ended = true
		a.cmd.Wait()
	}
}

// asUnprivileged is a program of another user, who may read what it needs.
func asUnprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to be another user")
	}
	unprivileged, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(unprivileged.Uid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
}

// Another user neither loads anything into a process nor asks it. The folder keeps that user out, and if somebody opens
// it, the library looks who asks.
func TestAttachOfAnotherUser(t *testing.T) {
	who := asUnprivileged(t)
	shared := open(t)
	other := filepath.Join(shared, "memtrace")
	copyFile(t, command(t), other, 0o755)
	copyFile(t, library(t), filepath.Join(shared, "libmemtrace.so"), 0o755)
	ask := func(args ...string) string {
		cmd := exec.Command(other, args...)
		cmd.Dir = shared
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
		text, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%v ends well: %s", args, text)
		}
		return string(text)
	}
	a := startAttached(t, nil, "quiet")
	if said := ask("attach", a.pid()); !strings.Contains(said, "as that user or as root") {
		t.Errorf("it says %q", said)
	}
	a.attach(t)
	paths := a.sockets(t)
	if len(paths) != 1 {
		t.Fatalf("sockets %v", paths)
	}
	folder := filepath.Dir(paths[0])
	for path, want := range map[string]os.FileMode{folder: os.ModeDir | 0o700, paths[0]: os.ModeSocket | 0o600} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
	if said := ask("ctl", a.pid(), "stop"); said == "" {
		t.Error("another user is not told why not")
	}
	os.Chmod(folder, 0o755)
	os.Chmod(paths[0], 0o666)
	if said := ask("ctl", a.pid(), "stop"); !strings.Contains(said, "does not answer") {
		t.Errorf("with the doors open it says %q", said)
	}
	os.Chmod(folder, 0o700)
	a.do(t, "alloc 6 5001")
	a.end(t)
	a.sizes(t, map[uint64]int{5001: 6})
}

// Root attaches to another user's process, which writes its trace where that user may.
func TestAttachByRoot(t *testing.T) {
	t.Parallel()
	who := asUnprivileged(t)
	dir := open(t)
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	for name, from := range map[string]string{"libcuda.so.1": filepath.Join(nullGPU(t), "libcuda.so.1"),
		"libmemtrace.so": library(t), "attached": program} {
		copyFile(t, from, filepath.Join(dir, name), 0o755)
	}
	cmd := exec.Command(filepath.Join(dir, "attached"), "quiet")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "NULLCUDA_SHARED=none", "LD_LIBRARY_PATH="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q %v", line, err)
	}
	attach := exec.Command(command(t), "attach", strconv.Itoa(cmd.Process.Pid))
	attach.Dir, attach.Env = t.TempDir(), append(os.Environ(), "MEMTRACE_LIBRARY="+filepath.Join(dir, "libmemtrace.so"))
	if text, err := attach.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	in.Write([]byte("alloc 8 5001\nend\n"))
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if r := (result{dir: dir}).only(t); r.allocations(5001) != 8 {
		t.Errorf("%d allocations", r.allocations(5001))
	}
}

// A socket under the process's name that another process has put there is not believed.
func TestForgedSocket(t *testing.T) {
	t.Parallel()
	a := startAttached(t, nil, "quiet")
	folder := "/tmp/memtrace-" + strconv.Itoa(os.Getuid())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, a.pid()+".sock")
	forged, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer forged.Close()
	a.refused(t, "has no control socket", "ctl", a.pid(), "status")
	a.attach(t) // the library puts its own there
	a.end(t)
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is left", path)
	}
}

// A malformed request gets an answer, by every route.
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	a := startAttached(t, nil, "quiet")
	a.attach(t)
	for _, c := range [][2]string{
		{"", ""},
		{"what", "error=this version of the library does not know that request"},
		{"status", "state=recording"},
		{"mark", "error=a mark's name has"},
		{"mark " + strings.Repeat("x", 300), "error=a mark's name has"},
		{strings.Repeat("start\n", 2000), "state=recording"},
		{strings.Repeat("x", 20000), "error=this version"},
	} {
		question, answer := c[0], c[1]
		connection, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: a.sockets(t)[0], Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		connection.SetDeadline(time.Now().Add(patience))
		connection.Write([]byte(question))
		if question == "" {
			connection.CloseWrite()
		}
		buffer := make([]byte, 64<<10)
		n, _ := connection.Read(buffer)
		if !strings.Contains(string(buffer[:n]), answer) {
			t.Errorf("%.20q is answered %q, want %q", question, buffer[:n], answer)
		}
		connection.Close()
	}
	a.do(t, "alloc 2 5001")
	a.end(t)
}
