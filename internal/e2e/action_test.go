//go:build e2e

package e2e

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// summaryFile is the summary of the sample's pull request, which docs/ci.md shows.
const summaryFile = "testdata/ci/summary.md"

// recipe is a workflow of testdata/ci.
type recipe struct {
	Jobs map[string]struct {
		Steps []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

// inputsOf returns what the recipe gives to the action.
func inputsOf(t *testing.T) map[string]string {
	t.Helper()
	var file recipe
	readYAML(t, "testdata/ci/github.yml", &file)
	for _, step := range file.Jobs["memory"].Steps {
		if strings.Contains(step.Uses, "/memtrace@v") {
			return step.With
		}
	}
	t.Fatal("the recipe does not use the action")
	return nil
}

// wheelOf builds a wheel for this machine, once, in a folder of its own: others run what is in build/ meanwhile.
func wheelOf(t *testing.T) string {
	t.Helper()
	wheel, err := builtWheel()
	if err != nil {
		t.Fatal(err)
	}
	return wheel
}

var builtWheel = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(root(), "build", "wheel", "e2e")
	if err := os.RemoveAll(filepath.Join(folder, "dist")); err != nil {
		return "", err
	}
	// C is compiled already; what is linked has the package's version.
	cmd := exec.Command("bash", "-ec", `mkdir -p "$1" && cp -a build/cshim build/nullcuda "$1/" && `+
		`"$(scripts/python-tools.sh internal/tools/wheel-requirements.txt)/python" `+
		`-m build --wheel --no-isolation --outdir "$1/dist" .`, "bash", folder)
	cmd.Dir, cmd.Env = root(), append(os.Environ(), "MAKEFLAGS=BUILD=build/wheel/e2e")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("no wheel: %w\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(folder, "dist", "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("wheels %v: %w", wheels, err)
	}
	return wheels[0], nil
})

// sampleRepository copies the sample as a job checks it out.
func sampleRepository(t *testing.T) string {
	t.Helper()
	work := filepath.Join(t.TempDir(), "sample")
	if err := os.CopyFS(work, os.DirFS(filepath.Join(root(), "testdata/ci/sample"))); err != nil {
		t.Fatal(err)
	}
	return work
}

func bash(t *testing.T, dir, script string, env ...string) outcome {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, append(environ(), env...)
	return runOne(t, cmd)
}

// The sample repository, whose pull request makes the model 3 % larger through an attention mask, under the action as
// the recipe for GitHub has it: the check passes before, fails after with the owner, its module and line, and passes
// once the baseline is updated. The summary is the one of the documentation. The lines of the other recipes do the
// same.
func TestActionOnSample(t *testing.T) {
	t.Parallel()
	extended(t)
	// what the recipe's own step installs
	path := filepath.Join(venv(t, torch27, ""), "bin") + ":" + os.Getenv("PATH")
	var action actionFile
	readYAML(t, "action.yml", &action)
	r := &runner{work: sampleRepository(t), temp: t.TempDir(), contexts: map[string]string{"github.action_path": root(),
		"github.action_ref": "", "github.action_repository": "", "github.server_url": "https://github.com"},
		env: []string{"PATH=" + path}}
	inputs := inputsOf(t)
	inputs["wheel"] = wheelOf(t)

	outputs := r.run(t, action, inputs)
	if r.status != 0 || outputs["status"] != "passed" || !strings.Contains(r.summary, "All 4 gates passed") ||
		strings.Contains(r.log, "::error") {
		t.Fatalf("before: status %d, %v\n%s\n%s", r.status, outputs, r.log, r.summary)
	}
	patch := bash(t, r.work, "patch -p1 <"+filepath.Join(root(), "testdata/ci/pull-request.patch"))
	if patch.status != 0 {
		t.Fatal(patch)
	}
	outputs = r.run(t, action, inputs)
	const where = `::error file=model\.py,line=18,title=memtrace check%3A category%3AFeature maps \+2%25::[^\n]*\.bin: ` +
		`category Feature maps is 474\.2 MiB at its highest[^\n]*by module model\.blocks\.0\.attention \(\+4\.00 ` +
		`MiB\); by site model\.py:18 Attention\.forward`
	if r.status != 1 || outputs["status"] != "failed" || !regexp.MustCompile(where).MatchString(r.log) {
		t.Errorf("after: status %d, %v\n%s", r.status, outputs, r.log)
	}
	compareSummary(t, r.summary)
	checkArtefacts(t, r, outputs)

	memtrace := r.path[0] + "/memtrace"
	update := bash(t, r.work, memtrace+" check --run train --update "+outputs["traces"])
	check := bash(t, r.work, memtrace+" check --run train "+outputs["traces"])
	if update.status != 0 || check.status != 0 || !strings.Contains(check.stdout, "All 4 gates passed") {
		t.Errorf("updated: %+v\n%+v", update, check)
	}
	runRecipes(t, filepath.Dir(memtrace))
	compareWithBase(t, "PATH="+r.path[0]+":"+path)

	inputs["command"] = "echo the program fails; exit 7"
	if outputs = r.run(t, action, inputs); r.status != 7 || outputs["status"] != "program" || len(r.used) != 0 {
		t.Errorf("a program that fails: status %d, %v\n%s", r.status, outputs, r.log)
	}
}

// compareSummary compares a job's summary with the one of the documentation, but for the name of the trace.
func compareSummary(t *testing.T, summary string) {
	t.Helper()
	summary = regexp.MustCompile("`[^`\n]*/python\\.\\d+\\.bin`").ReplaceAllString(summary, "`python.4711.bin`")
	path := filepath.Join(root(), summaryFile)
	if *updatePages {
		if err := os.WriteFile(path, []byte(summary), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if summary != string(want) {
		t.Errorf("%s is\n%s\nthe job's summary\n%s", summaryFile, want, summary)
	}
}

// checkArtefacts: what is uploaded is there, and JUnit's XML has the two gates that failed.
func checkArtefacts(t *testing.T, r *runner, outputs map[string]string) {
	t.Helper()
	if len(r.used) != 1 || !strings.HasPrefix(r.used[0]["uses"], "actions/upload-artifact@") ||
		r.used[0]["name"] != "memory" {
		t.Fatalf("used %v", r.used)
	}
	for _, name := range []string{"report", "junit", "sarif", "traces"} {
		if path := outputs[name]; filepath.Dir(path) != r.used[0]["path"] {
			t.Errorf("%s is %s, and %s is uploaded", name, path, r.used[0]["path"])
		} else if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(outputs["junit"])
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err != nil || xml.Unmarshal(text, &suites) != nil || suites.Tests != 4 || suites.Failures != 2 {
		t.Errorf("%v, JUnit %+v:\n%s", err, suites, text)
	}
}

// runRecipes runs the lines of the recipes for GitLab and Jenkins on the null GPU, all but the installation. Jenkins
// builds where it built before: what that build wrote made the next one fail.
func runRecipes(t *testing.T, commands string) {
	t.Helper()
	var gitlab struct{ Memory struct{ Script []string } }
	readYAML(t, "testdata/ci/gitlab-ci.yml", &gitlab)
	jenkins, err := os.ReadFile(filepath.Join(root(), "testdata/ci/Jenkinsfile"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	shell := regexp.MustCompile(`(?m)^ *sh (?:'([^'\n]+)'|"([^"\n]+)")$`)
	for _, m := range shell.FindAllStringSubmatch(string(jenkins), -1) {
		if line := m[1] + m[2]; !strings.Contains(line, ".venv") {
			lines = append(lines, line)
		}
	}
	twice := slices.Concat(lines, lines)
	for name, script := range map[string][]string{"GitLab": gitlab.Memory.Script, "Jenkins": twice} {
		if len(script) != map[string]int{"GitLab": 2, "Jenkins": 6}[name] {
			t.Errorf("%s runs %q", name, script)
		}
		work := sampleRepository(t)
		launcher := filepath.Join(venv(t, torch27, ""), "bin", "nullcuda-run")
		done := bash(t, work, launcher+" bash -e -c '"+strings.ReplaceAll(strings.Join(script, "\n"), "'", `'\''`)+"'",
			"PATH="+commands+":"+os.Getenv("PATH"), "NULLCUDA_SHARED=none")
		if done.status != 0 || !strings.Contains(done.stdout, "All 4 gates passed") {
			t.Errorf("%s: %+v", name, done)
		}
		for _, file := range []string{"memory.xml", "memory.md", "traces"} {
			if _, err := os.Stat(filepath.Join(work, file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// compareWithBase runs the last step of the recipe that needs no baseline, in a repository without a budget, as the
// pull request has it.
func compareWithBase(t *testing.T, path string) {
	t.Helper()
	var file recipe
	readYAML(t, "testdata/ci/github-base.yml", &file)
	steps := file.Jobs["memory"].Steps
	work := sampleRepository(t)
	prepared := bash(t, work, `rm memtrace.toml memory.json
		git init -q && git add . && git -c user.name=n -c user.email=n@example.org commit -q -m base
		git update-ref refs/remotes/origin/main HEAD
		patch -p1 <`+filepath.Join(root(), "testdata/ci/pull-request.patch"))
	if prepared.status != 0 {
		t.Fatal(prepared)
	}
	done := bash(t, work, steps[len(steps)-1].Run, path, "GITHUB_BASE_REF=main", "NULLCUDA_SHARED=none")
	if done.status != 1 || !strings.Contains(strings.Join(strings.Fields(done.stdout), " "),
		"model.py:18 Attention.forward (new, +24.0 MiB)") {
		t.Errorf("%+v", done)
	}
}

// What the action says of wrong use, and the other ways to get memtrace and memory: a release, traces at hand, the null
// GPU for a program without a framework.
func TestActionInputs(t *testing.T) {
	t.Parallel()
	extended(t)
	var action actionFile
	readYAML(t, "action.yml", &action)
	wheel := wheelOf(t)
	// A release and a package index as pip sees them: pages with links to files.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch name := filepath.Base(wheel); q.URL.Path {
		case "/someone/memtrace/releases/expanded_assets/v0.1.0", "/simple/memtrace-gpu/":
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte(`<a href="/files/` + name + `">` + name + `</a>`))
		case "/files/" + name:
			http.ServeFile(w, q, wheel)
		default:
			http.NotFound(w, q)
		}
	}))
	t.Cleanup(server.Close)
	work := t.TempDir()
	r := &runner{work: work, temp: t.TempDir(), contexts: map[string]string{"github.action_path": root(),
		"github.action_ref": "v0.1.0", "github.action_repository": "someone/memtrace", "github.server_url": server.URL},
		env: []string{"PIP_INDEX_URL=" + server.URL + "/simple"}}
	base := map[string]string{"command": `"$PACKAGE/memtrace/_bin/demo/train"`, "null-gpu": "true", "max": "driver=1GiB\n"}
	with := func(more map[string]string) map[string]string {
		inputs := maps.Clone(base)
		maps.Copy(inputs, more)
		return inputs
	}
	outputs := r.run(t, action, base)
	if r.status != 0 || outputs["status"] != "passed" || len(r.used) != 0 {
		t.Fatalf("status %d, %v\n%s", r.status, outputs, r.log)
	}
	traces := map[string]string{"command": "", "traces": outputs["traces"], "wheel": wheel}
	for _, test := range []struct {
		name   string
		more   map[string]string
		status int
		is     string
		says   string
	}{
		{"a limit", map[string]string{"max": "driver=1KiB"}, 1, "failed", "title=memtrace check%3A driver::"},
		{"two gates", map[string]string{"assert": "no-finding=out-of-memory\n\n", "wheel": wheel}, 0, "passed",
			"All 2 gates passed"},
		{"traces", traces, 0, "passed", "The gate passed"},
		{"a version", map[string]string{"version": "0.1.0"}, 0, "passed", "memtrace 0.1.0"},
		{"no version", map[string]string{"version": "9.9"}, 2, "", "name a wheel or a version"},
		{"a wrong gate", map[string]string{"max": "diver=1GiB"}, 2, "error", "did you mean driver?"},
		{"no gate", map[string]string{"max": ""}, 2, "error", "write a budget, memtrace.toml"},
		{"no budget", map[string]string{"budget": "gone.toml"}, 2, "error", "gone.toml"},
		{"neither", map[string]string{"command": ""}, 2, "", "::error title=memtrace::give a command, or traces"},
		{"both", map[string]string{"traces": "x"}, 2, "", "command and traces: give one of them"},
		{"no wheel", map[string]string{"wheel": "gone.whl"}, 2, "", "there is no file gone.whl"},
		{"no device", map[string]string{"null-gpu": "9"}, 2, "program",
			"give 1 to 8 devices, the size of each, or both"},
		{"no memory", map[string]string{"command": "true"}, 2, "error", "no trace in this folder"},
	} {
		outputs := r.run(t, action, with(test.more))
		if r.status != test.status || outputs["status"] != test.is || !strings.Contains(r.log, test.says) {
			t.Errorf("%s: status %d, %v; want %d, %q, %q\n%s", test.name, r.status, outputs, test.status, test.is,
				test.says, r.log)
		}
	}
}
