package hostile

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/internal/guest"
)

// wary is a program that loading a library could harm: it filters its system calls, or those of another thread, or has
// a small limit on data. It ends well if it was left alone.
const wary = `#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_barrier_t there;
static void filter(void) {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(3);
}
static void *other(void *unused) {
  filter();
  pthread_barrier_wait(&there);
  for (;;) pause();
  return unused;
}
int main(int argc, char **argv) {
  pthread_t thread;
  pthread_barrier_init(&there, NULL, 2);
  if (argc > 1 && !strcmp(argv[1], "filter")) filter();
  if (argc > 1 && !strcmp(argv[1], "thread") && !pthread_create(&thread, NULL, other, NULL))
    pthread_barrier_wait(&there);
  if (argc > 1 && !strcmp(argv[1], "data")) {
    struct rlimit most = {32 << 20, 32 << 20};
    if (setrlimit(RLIMIT_DATA, &most)) return 4;
  }
  puts("ready");
  fflush(stdout);
  if (getchar() != 'e') return 1;
  for (int i = 0; i < 1000; i++)
    if (!malloc(4096)) return 2;
  return 0;
}
`

// leftAlone has the program end, as well as it would have alone.
func (a *attached) leftAlone(t *testing.T) {
	t.Helper()
	maps, err := os.ReadFile("/proc/" + a.pid() + "/maps")
	if err != nil || strings.Contains(string(maps), "libmemtrace") {
		t.Errorf("the library is loaded, %v", err)
	}
	a.ended = true
	a.input.Write([]byte("end\n"))
	if err := a.cmd.Wait(); err != nil || a.errors.Len() > 0 {
		t.Errorf("it ends by %v and says %q", err, a.errors.String())
	}
}

// A program that kills itself over opening a file was killed by attach; in one with a small limit on data the library
// failed to record, stayed, and let thousands of the program's allocations fail.
func TestAttachWhereItWouldHarm(t *testing.T) {
	t.Parallel()
	program := compile(t, "wary", []string{wary})
	for mode, says := range map[string]string{
		"filter": "filters its system calls", "thread": "filters its system calls", "data": "on data leaves",
	} {
		a := startProgram(t, program, run{}, nil, mode)
		a.refused(t, says, "attach", a.pid())
		a.leftAlone(t)
	}
}

// A process that is stopped, or traced by another one, is distinguished from one in which no thread waits.
func TestAttachToStoppedAndTraced(t *testing.T) {
	t.Parallel()
	program := compile(t, "wary", []string{wary})
	a := startProgram(t, program, run{}, nil)
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, a.pid(), "State:\tT")
	a.refused(t, "is stopped", "attach", a.pid())
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	tracer := exec.Command(guest.Tool(t, "strace", "-o", "/dev/null", "true"), "-qq", "-o", "/dev/null", "-p", a.pid())
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	for { // until it traces
		text, err := os.ReadFile("/proc/" + a.pid() + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "TracerPid:\t0\n") {
			break
		}
		if tracer.Process.Signal(syscall.Signal(0)) != nil {
			t.Skip("strace may not trace")
		}
	}
	a.refused(t, "is traced by process", "attach", "--door", "ptrace", a.pid())
	tracer.Process.Signal(syscall.SIGTERM)
	tracer.Wait()
	a.leftAlone(t)
}

func awaitStatus(t *testing.T, pid, line string) {
	t.Helper()
	for {
		text, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), line) {
			return
		}
	}
}

// A client that connects to the control socket and sends nothing delays no other, and may send its request after them.
func TestSilentClientKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	a := startAttached(t, nil, "quiet")
	a.attach(t)
	silent, err := net.Dial("unixpacket", a.sockets(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for range 8 {
		a.well(t, "ctl", a.pid(), "status")
	}
	answer := make([]byte, 4096)
	silent.SetDeadline(time.Now().Add(time.Minute))
	_, err = silent.Write([]byte("status"))
	n := 0
	if err == nil {
		n, err = silent.Read(answer)
	}
	if err != nil || !strings.HasPrefix(string(answer[:n]), "state=recording") {
		t.Errorf("it says %q, %v", answer[:n], err)
	}
	a.end(t)
}
