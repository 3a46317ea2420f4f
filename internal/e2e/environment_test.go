//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"memtrace/internal/guest"
)

// The frameworks that the tests run on. torch113 is the oldest PyTorch whose memory has names: it has no hook for all
// optimizers. JAX, CuPy, Numba and RMM are beside their tests.
const (
	torch27  = "torch==2.7.1"
	torch215 = "torch==2.15.0"
	torch113 = "torch==1.13.1"
	mxnet    = "mxnet-cu112==1.9.1"
)

// A tier is a set of tests by what they need. TIER names the one to run; each has all of those before it.
type tier int

const (
	core     tier = iota // make test: torch27 on the Python at hand
	complete             // make test-all: torch215, torch113 and MXNet; a browser; documents
	nightly              // make nightly: other frameworks and interpreters, long forms
)

var tiers = map[string]tier{"": core, "core": core, "all": complete, "nightly": nightly}

var (
	names    = []string{"core", "all", "nightly"}
	commands = []string{"make test", "make test-all", "make nightly"}
)

// needs skips a test that belongs to a later tier than the one that runs. One that was named by -run fails instead,
// unless TIER says that skipping is meant: "ok" would say that it passed.
func needs(t *testing.T, wanted tier, what string) {
	t.Helper()
	now, known := tiers[os.Getenv("TIER")]
	if !known {
		t.Fatalf("TIER=%s is none of core, all, nightly", os.Getenv("TIER"))
	}
	if now < wanted {
		if named := flag.Lookup("test.run").Value.String(); named != "" && os.Getenv("TIER") == "" {
			t.Fatalf("%s: run it with TIER=%s", what, names[wanted])
		}
		t.Skipf("%s: %s", what, commands[wanted])
	}
}

// reaches reports whether the tier that runs has what belongs to another.
func reaches(wanted tier) bool { return tiers[os.Getenv("TIER")] >= wanted }

// combination is a framework and a version of Python for which it is published; "" is the one that its tests usually
// run on.
type combination struct{ framework, python string }

func (c combination) String() string { return strings.TrimSuffix(c.framework+"/"+c.python, "/") }

// usual is the version of Python beside a framework, where that is not the one at hand: the newest, and the last one
// for which old frameworks have wheels.
var usual = map[string]string{torch215: "3.14", torch113: "3.11", mxnet: "3.11"}

// tierOf returns the tier in which an environment is installed.
func tierOf(framework, python string) tier {
	switch {
	case python != usual[framework]:
		return nightly
	case framework == torch27:
		return core
	case usual[framework] != "":
		return complete
	}
	return nightly
}

// once caches what costs a process to find out, by a key: every test needs it.
type once struct{ found sync.Map }

func (o *once) get(key string, find func() (string, error)) (string, error) {
	value, _ := o.found.LoadOrStore(key, sync.OnceValues(find))
	return value.(func() (string, error))()
}

// tool runs a script below testdata that makes or finds something in the cache and prints its path.
func tool(script string, args ...string) (string, error) {
	cmd := exec.Command("python3", append([]string{filepath.Join(guest.Root(), "testdata", script)}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), err
}

var interpreters, venvs, packageFolders once

// interpreter returns the path of a CPython of a version, of the one at hand for "", or skips the test.
func interpreter(t *testing.T, version string) string {
	t.Helper()
	switch version {
	case "":
		return "python3"
	case usual[mxnet], usual[torch215]:
		needs(t, complete, "Python "+version)
	default:
		needs(t, nightly, "Python "+version)
	}
	path, err := interpreters.get(version, func() (string, error) { return tool("python/interpreters.py", version) })
	if err != nil {
		t.Skipf("no interpreter: %v", err)
	}
	return path
}

// venv returns the folder of a framework's virtual environment for a version of Python, made at first use.
func venv(t *testing.T, framework, version string) string {
	t.Helper()
	if version == "" {
		version = usual[framework]
	}
	needs(t, tierOf(framework, version), combination{framework, version}.String())
	python := interpreter(t, version)
	dir, err := venvs.get(framework+" "+python, func() (string, error) {
		return tool("nullcuda/venv.py", framework, "--python", python)
	})
	if err != nil {
		t.Fatalf("no environment with %s: %v", framework, err)
	}
	return dir
}

// packageFolder returns a folder with what a file of testdata/python requires, for a program's interpreter; the test is
// skipped where it cannot be fetched.
func (p program) packageFolder(t *testing.T, requirements string) string {
	t.Helper()
	python := filepath.Join(venv(t, p.framework, p.python), "bin", "python")
	folder, err := packageFolders.get(python+" "+requirements, func() (string, error) {
		return tool("python/packages.py", filepath.Join(guest.Root(), "testdata", "python", requirements), "--python",
			python)
	})
	if err != nil {
		t.Skipf("no packages for %s: %v", python, err)
	}
	return folder
}

// installing is held while a package is looked for and installed: tests that run at once share an environment.
var installing sync.Mutex

// needPackage installs a package into a framework's environment where it is missing.
func needPackage(t *testing.T, c combination, name string) {
	t.Helper()
	python := filepath.Join(venv(t, c.framework, c.python), "bin", "python")
	installing.Lock()
	defer installing.Unlock()
	if exec.Command(python, "-c", "import "+name).Run() == nil {
		return
	}
	if text, err := exec.Command(python, "-m", "pip", "install", "-q", name).CombinedOutput(); err != nil {
		t.Fatalf("cannot install %s: %v\n%s", name, err, text)
	}
}

// extended leaves a test of PyTorch's to `make test-all`: `make test` has another one of the same kind.
func extended(t *testing.T) {
	t.Helper()
	needs(t, complete, "not in the core")
}

// rarely leaves a case to `make nightly` where others of the same test cover each of its sides: all modes on one
// version, one mode on the others.
func rarely(t *testing.T, when bool) {
	t.Helper()
	if when {
		needs(t, nightly, "another combination of what other cases have")
	}
}
