//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A runner does what GitHub's does with the shell steps of a composite action: it fills in expressions, runs each
// script in bash, and reads the files that steps write to. Steps that use other actions are passed over; what they
// would be given is kept.
type runner struct {
	contexts map[string]string   // by expression: inputs.run, steps.check.outputs.status
	env      []string            // of the machine
	summary  string              // what steps added to the job's summary
	log      string              // what they printed
	path     []string            // folders that steps added to PATH
	used     []map[string]string // inputs of the actions that steps use
	status   int                 // of the first step that failed
	temp     string
	work     string // the repository that the job checked out
}

type actionStep struct {
	Name, ID, If, Shell, Run, Uses string
	Dir                            string `yaml:"working-directory"`
	Env, With                      map[string]string
}

type actionFile struct {
	Inputs map[string]struct {
		Description, Default string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// fill replaces expressions. One that is not known is a mistake in the file.
func (r *runner) fill(t *testing.T, text string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(match string) string {
		name := expression.FindStringSubmatch(match)[1]
		value, known := r.contexts[name]
		if !known && !strings.HasPrefix(name, "steps.") { // an output that was not written is empty
			t.Errorf("nothing is known of %s", name)
		}
		return value
	})
}

// holds judges a condition: always(), and contexts that must not be empty.
func (r *runner) holds(t *testing.T, condition string) bool {
	t.Helper()
	holds := r.status == 0
	for i, part := range strings.Split(condition, "&&") {
		switch part = strings.TrimSpace(part); {
		case part == "":
		case part == "always()" && i == 0:
			holds = true
		case strings.HasSuffix(part, " != ''"):
			holds = holds && r.contexts[strings.TrimSuffix(part, " != ''")] != ""
		default:
			t.Fatalf("the test does not know the condition %q", part)
		}
	}
	return holds
}

// run runs the action with inputs, and returns its outputs.
func (r *runner) run(t *testing.T, action actionFile, inputs map[string]string) map[string]string {
	t.Helper()
	r.summary, r.log, r.path, r.used, r.status = "", "", nil, nil, 0
	maps.DeleteFunc(r.contexts, func(name, _ string) bool { return strings.HasPrefix(name, "steps.") })
	for name, input := range action.Inputs {
		r.contexts["inputs."+name] = input.Default
	}
	for name, value := range inputs {
		if _, known := action.Inputs[name]; !known {
			t.Errorf("the action has no input %s", name)
		}
		r.contexts["inputs."+name] = value
	}
	for _, step := range action.Runs.Steps {
		if !r.holds(t, step.If) {
			continue
		}
		if step.Uses != "" {
			with := map[string]string{"uses": step.Uses}
			for name, value := range step.With {
				with[name] = r.fill(t, value)
			}
			r.used = append(r.used, with)
			continue
		}
		if step.Shell != "bash" {
			t.Fatalf("the step %q runs in %q", step.Name, step.Shell)
		}
		if status := r.step(t, step); status != 0 && r.status == 0 {
			r.status = status
		}
	}
	outputs := map[string]string{}
	for name, output := range action.Outputs {
		outputs[name] = r.fill(t, output.Value)
	}
	return outputs
}

// step runs one script.
func (r *runner) step(t *testing.T, step actionStep) int {
	t.Helper()
	folder, err := os.MkdirTemp(r.temp, "step")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"GITHUB_OUTPUT": "", "GITHUB_STEP_SUMMARY": "", "GITHUB_ENV": "", "GITHUB_PATH": ""}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", filepath.Join(folder, "script.sh"))
	cmd.Dir = filepath.Join(r.work, r.fill(t, step.Dir))
	cmd.Env = append(environ(), "PATH="+strings.Join(append(r.path, os.Getenv("PATH")), ":"), "GITHUB_ACTIONS=true",
		"CI=true", "GITHUB_WORKSPACE="+r.work, "RUNNER_TEMP="+r.temp, "NULLCUDA_SHARED=none",
		"GITHUB_SERVER_URL="+r.contexts["github.server_url"], "LC_ALL=C.UTF-8")
	cmd.Env = append(cmd.Env, r.env...)
	for name, value := range step.Env {
		cmd.Env = append(cmd.Env, name+"="+r.fill(t, value))
	}
	for name := range files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+path)
	}
	if err := os.WriteFile(filepath.Join(folder, "script.sh"), []byte(r.fill(t, step.Run)), 0o600); err != nil {
		t.Fatal(err)
	}
	done := runOne(t, cmd)
	r.log += done.stdout + done.stderr
	for name := range files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	r.summary += files["GITHUB_STEP_SUMMARY"]
	if files["GITHUB_ENV"] != "" {
		t.Errorf("the step %q changes variables of later steps: %s", step.Name, files["GITHUB_ENV"])
	}
	r.path = append(strings.Fields(files["GITHUB_PATH"]), r.path...)
	for line := range strings.Lines(files["GITHUB_OUTPUT"]) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found {
			t.Errorf("the step %q writes the output %q", step.Name, line)
		}
		r.contexts[fmt.Sprintf("steps.%s.outputs.%s", step.ID, name)] = value
	}
	return done.status
}
