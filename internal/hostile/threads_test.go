package hostile

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/guest"
	"memtrace/trace"
)

func briefly(t *testing.T) string {
	return compile(t, "briefly", []string{"testdata/guest/briefly.c"}, withDriver(t)...)
}

// The first process of a trace of strace's, and the thread that one of its calls made.
var madeThread = regexp.MustCompile(`^(\d+) +(?:clone3?\(|<\.\.\. clone3? resumed>).* = (\d+)$`)

// dependsOnLoad is a call of a kind that a busy machine has more of: threads wait, and use rings for the first time
// where those of threads that ended are not drained yet.
var dependsOnLoad = regexp.MustCompile(`^futex\(|^madvise\(.*MADV_POPULATE_WRITE`)

// calls counts the system calls that a program's own threads make for each of its threads that end, but for those that
// depend on the load. The first thread makes one of the library's as well, which does not end.
func calls(t *testing.T, path string) (each float64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	first, made, ended, count := "", map[string]bool{}, 0, map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		thread, call, _ := strings.Cut(lines.Text(), " ")
		if first == "" {
			first = thread
		}
		if m := madeThread.FindStringSubmatch(lines.Text()); m != nil && m[1] == first {
			made[m[2]] = true
		}
		call = strings.TrimLeft(call, " ")
		if !strings.HasPrefix(call, "<... ") && !dependsOnLoad.MatchString(call) {
			count[thread]++
		}
		if made[thread] && strings.HasPrefix(call, "exit(") {
			ended++
		}
	}
	if lines.Err() != nil || ended == 0 {
		t.Fatalf("%d threads ended, %v", ended, lines.Err())
	}
	sum := count[first]
	for thread := range made {
		sum += count[thread]
	}
	return float64(sum) / float64(ended)
}

// A short thread cost five to eight times as much: it read the kernel's list of mappings for its stack, and its seccomp
// filters. System calls are counted, since times mean nothing on a busy machine.
func TestShortThreadsCostFewCalls(t *testing.T) {
	t.Parallel()
	strace := guest.Tool(t, "strace", "-o", "/dev/null", "true")
	program := briefly(t)
	const threads = 3000 // among which the calls of the start and the end do not count for much
	count := func(preload ...string) float64 {
		r, path := run{preload: preload, dir: t.TempDir()}, filepath.Join(t.TempDir(), "calls")
		args := []string{"-f", "-qq", "-o", path}
		for _, variable := range r.environment(t) {
			args = append(args, "-E", variable)
		}
		cmd := exec.Command(strace, append(args, program, "after", strconv.Itoa(threads))...)
		cmd.Dir = r.dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return calls(t, path)
	}
	plain, recorded := count(), count("")
	t.Logf("%.1f calls a thread, %.1f without the library", recorded, plain)
	if recorded > 1.5*plain {
		t.Errorf("%.1f calls a thread, %.1f without the library", recorded, plain)
	}
}

// More than 4,096 threads at once found no ring, and a fifth of their records was lost.
func TestManyThreadsAtOnce(t *testing.T) {
	t.Parallel()
	const threads, each = 6000, 3
	got := run{program: briefly(t), args: []string{"beside", strconv.Itoa(threads), strconv.Itoa(each)}}.both(t, "")
	r := got.only(t)
	seen := map[trace.ThreadID]bool{}
	n := r.count(func(e trace.Event) bool {
		if e.Kind == trace.EventAlloc && e.Size == ownSize {
			seen[e.Thread] = true
			return true
		}
		return false
	})
	if n != threads*each+each || len(seen) != threads+1 || r.health.Gaps != 0 {
		t.Errorf("%d allocations of %d, of %d threads; %+v", n, threads*each+each, len(seen), r.health)
	}
}
