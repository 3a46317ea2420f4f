//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"memtrace/internal/guest"
)

// A recording is what one run of a program left: trace, counters, the null driver's log, output and exit status. It is
// made at first use and kept below build/recordings, in a folder named after everything that can change it, so that
// tests which only read share one run, and a second `go test` runs no framework at all.
//
//	build/recordings/LIBRARY/PROGRAM-KEY/        LIBRARY: digest of libmemtrace.so, or "plain" without it
//	    t.bin, stats.json, driver.log, ...      what the program wrote; its working directory
//	    stdout, stderr
//	    recording.json                          the manifest, written last: without it the run did not end
//
// Recordings are immutable: a test writes into t.TempDir(), and a file that was changed or added fails the next test
// that opens the recording. A program that has to be killed, attached to or watched while it runs is started by
// program.start and keeps a folder of its own.
type manifest struct {
	Key    recordingKey
	Status int               // exit status
	Cost   float64           // processor seconds
	Files  map[string]string // SHA-256 by path below the folder
}

// recordingKey is everything that a recording depends on.
type recordingKey struct {
	Library     string   // digest, "" without it
	Sources     string   // digest of the programs, the oracles and the Python package
	Environment string   // the stamp of the virtual environment: framework, packages, interpreter, null GPU
	Program     string   // its source, where that is the test's own
	Flags       []string // of the interpreter
	Args, Env   []string // before placeholders are replaced
	Late        bool
}

const manifestName = "recording.json"

// record returns the run of a program to its end, made now or earlier. A program whose exit status is not 0 fails the
// test unless p.mayFail.
func (p program) record(t *testing.T) *result {
	t.Helper()
	p.env = slices.Concat([]string{patience}, p.env)
	key := p.key(t)
	text, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(text)
	name := strings.TrimSuffix(filepath.Base(p.script()), ".py") + "-" + hex.EncodeToString(digest[:6])
	dir := filepath.Join(guest.Root(), "build", "recordings", cmp.Or(key.Library, "plain"), name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	showOnFailure(t, dir)
	unlock := guest.Lock(t, dir+".lock")
	defer unlock()
	if m, ok := readManifest(dir); ok && reflect.DeepEqual(m.Key, key) {
		return openRecording(t, dir, m)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, r := p.startIn(t, dir)
	got := runOne(t, cmd)
	r.stdout, r.stderr, r.status = got.stdout, got.stderr, got.status
	if r.status != 0 && !p.mayFail {
		t.Fatalf("%s %v: exit status %d\n%s%s", p.framework, p.args, r.status, r.stdout, r.stderr)
	}
	keepRecording(t, r, key, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return r
}

// script is the program's own file, after an oracle's.
func (p program) script() string {
	script := ""
	for _, a := range p.args {
		if script == "" || strings.Contains(script, "oracle") && strings.HasSuffix(a, ".py") {
			script = a
		}
	}
	return script
}

func (p program) key(t *testing.T) recordingKey {
	t.Helper()
	stamp, err := os.ReadFile(filepath.Join(venv(t, p.framework, p.python), "nullcuda.json"))
	if err != nil {
		t.Fatal(err)
	}
	k := recordingKey{Environment: string(stamp), Program: p.source, Flags: p.flags, Args: p.args, Env: p.env,
		Late: p.late}
	if k.Sources, err = sourcesDigest(); err != nil {
		t.Fatal(err)
	}
	if !p.plain {
		if k.Library, err = libraryDigest(); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

var (
	libraryDigest = sync.OnceValues(func() (string, error) {
		digest, err := digestOf(library())
		return digest[:min(12, len(digest))], err
	})
	sourcesDigest = sync.OnceValues(func() (string, error) {
		sum := sha256.New()
		for _, folder := range []string{"testdata/train", "testdata/oracle", "testdata/python", "testdata/growth",
			"python/memtrace"} {
			root := filepath.Join(guest.Root(), folder)
			err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() || strings.HasSuffix(path, ".pyc") {
					return err
				}
				digest, err := digestOf(path)
				fmt.Fprintln(sum, path, digest)
				return err
			})
			if err != nil {
				return "", err
			}
		}
		return hex.EncodeToString(sum.Sum(nil)), nil
	})
)

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// filesOf returns the digests of all files of a recording but its manifest.
func filesOf(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
		if err != nil || !e.Type().IsRegular() || name == manifestName {
			return err
		}
		files[name], err = digestOf(path)
		return err
	})
	return files, err
}

func readManifest(dir string) (m manifest, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	return m, err == nil && json.Unmarshal(text, &m) == nil
}

// keepRecording makes a run that has ended a recording.
func keepRecording(t *testing.T, r *result, key recordingKey, cost time.Duration) {
	t.Helper()
	m := manifest{Key: key, Status: r.status, Cost: cost.Seconds()}
	err := errors.Join(os.WriteFile(filepath.Join(r.dir, "stdout"), []byte(r.stdout), 0o444),
		os.WriteFile(filepath.Join(r.dir, "stderr"), []byte(r.stderr), 0o444))
	if err != nil {
		t.Fatal(err)
	}
	if m.Files, err = filesOf(r.dir); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, manifestName), text, 0o444); err != nil {
		t.Fatal(err)
	}
}

// openRecording returns what an earlier run left.
func openRecording(t *testing.T, dir string, m manifest) *result {
	t.Helper()
	files, err := filesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(files, m.Files) {
		t.Fatalf("%s is not as it was recorded: a test wrote into it, where it should write into t.TempDir(); remove it. It has %v, and had %v", dir, files,
			m.Files)
	}
	r := newResult(dir)
	r.status = m.Status
	for name, text := range map[string]*string{"stdout": &r.stdout, "stderr": &r.stderr} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		*text = string(content)
	}
	return r
}

// showOnFailure names a folder among the last lines of a test that failed.
func showOnFailure(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("recording: %s", dir)
		}
	})
}

// ownFolder returns a folder for one run of one test, which stays where the test fails.
func ownFolder(t *testing.T) string {
	t.Helper()
	runs := filepath.Join(guest.Root(), "build", "runs")
	if err := os.MkdirAll(runs, 0o755); err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	dir, err := os.MkdirTemp(runs, test+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("recording: %s", dir)
		} else {
			os.RemoveAll(dir)
		}
	})
	return dir
}

// TestMain removes recordings of earlier libraries.
func TestMain(m *testing.M) {
	build := filepath.Join(guest.Root(), "build")
	// Half of the time that an import of PyTorch takes is for compiling it, which other checkouts need not repeat.
	// Nothing is written beside sources.
	os.Unsetenv("PYTHONDONTWRITEBYTECODE")
	cache, err := guest.Cache()
	if err != nil {
		panic(err)
	}
	os.Setenv("PYTHONPYCACHEPREFIX", filepath.Join(cache, "pycache"))
	current, err := libraryDigest()
	if err == nil {
		folders, _ := filepath.Glob(filepath.Join(build, "recordings", "*"))
		for _, folder := range folders {
			if name := filepath.Base(folder); name != current && name != "plain" {
				os.RemoveAll(folder)
			}
		}
	}
	os.Exit(m.Run())
}

// outcome is what a program shows to the world.
type outcome struct {
	status         int
	stdout, stderr string
}

// runOne runs a command to its end.
func runOne(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = limit // a child of the program may hold its output open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatalf("the program hangs\n%s%s", stdout.String(), stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// until polls for an event. It fails the test with the event's name if it never comes; a busy machine may take long.
func until(t *testing.T, what string, came func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !came(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

// TestRecordings: the same program is run once, another one or another environment is another recording, and a
// recording that was written into is refused.
func TestRecordings(t *testing.T) {
	t.Parallel()
	p := program{framework: torch27, args: []string{"trial.py", "early"}}
	first, again := p.record(t), p.record(t)
	if !slices.Equal([]string{first.dir, first.stdout}, []string{again.dir, again.stdout}) {
		t.Errorf("recorded in %s and in %s", first.dir, again.dir)
	}
	m, ok := readManifest(first.dir)
	files, err := filesOf(first.dir)
	if !ok || err != nil || m.Files["t.bin"] == "" || !reflect.DeepEqual(files, m.Files) {
		t.Errorf("%v: the folder has %v, its manifest %v", err, files, m.Files)
	}
	k := p.key(t)
	p.env = []string{"A=1"}
	if reflect.DeepEqual(k, p.key(t)) {
		t.Error("an environment variable makes no other recording")
	}
	p.env, p.plain = nil, true
	if other := p.key(t); other.Library != "" || reflect.DeepEqual(k, other) {
		t.Error("a run without the library has the recording of one with it")
	}
}
