//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// Gradients of what is not trained are reported where they are computed, and a second set of a model's parameters
// always.
func TestCauses(t *testing.T) {
	t.Parallel()
	extended(t)
	for mode, untrained := range map[string]string{
		// five results of 8 MiB and the gradients of five layers; the detached one is there twice, since the last
		// iteration's is dropped only when the new one is assigned
		"graph": "No optimizer has the parameters of teacher, yet they have gradients (20.0 MiB), and its forward " +
			"pass left 40.0 MiB",
		"detached": "No optimizer has the parameters of teacher, and its forward pass left 80.0 MiB of activations " +
			"at the peak",
		"no_grad": "",
		"through": "",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := program{framework: torch27, args: []string{"distill.py", mode}}.record(t)
			sentences := strings.Join(jsonReport(t, r.trace).Verdict.Sentences, "\n")
			if !strings.Contains(sentences, "average has a second set of the 8 parameters of student: 16.0 MiB.") {
				t.Errorf("nothing is said of the moving average:\n%s", sentences)
			}
			if untrained != "" && !strings.Contains(sentences, untrained) ||
				untrained == "" && strings.Contains(sentences, "No optimizer has") {
				t.Errorf("want %q:\n%s", untrained, sentences)
			}
		})
	}
}

// Forward passes that keep what only a backward pass needs, which never comes, are told, with how many and how much
// torch.no_grad() would have left out; it is no remedy for a line of which other passes are differentiated. A pass has
// 16 results of 8 MiB; without a graph the last of them stays, and where it is being made, what it is made from.
func TestUndifferentiated(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"appended": "At the peak, 6 forward passes of train/validate.py:19 appended kept 712.0 MiB for a backward pass " +
			"that never came: run them under torch.no_grad().",
		"replaced": "At the peak, 2 forward passes of train/validate.py:26 replaced kept 232.0 MiB",
		"leaked":   "At the peak, 18 forward passes of train/validate.py:36 leaked kept 2.10 GiB",
		"skipped": "At the peak, 9 forward passes of train/validate.py:56 step kept 1.04 GiB for a backward pass that " +
			"never came, unlike others of that line",
		"without": "", "features": "", "accumulated": "",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode != "appended" {
				extended(t)
			}
			r := program{framework: torch27, args: []string{"validate.py", mode}}.record(t)
			sentences := strings.Join(jsonReport(t, r.trace).Verdict.Sentences, "\n")
			if !strings.Contains(sentences, want) || want == "" && strings.Contains(sentences, "never came") ||
				mode == "skipped" && strings.Contains(sentences, "no_grad") {
				t.Errorf("want %q:\n%s", want, sentences)
			}
		})
	}
}

// Where functions and no modules hold the activations, the first sentence names the one in which they come together.
func TestFunctionalCode(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"functional.py"}}.record(t)
	rep := jsonReport(t, r.trace)
	const says = "was allocated in layer (train/functional.py) and what it calls"
	if first := rep.Verdict.Sentences[0]; !strings.Contains(first, says) {
		t.Error(first)
	}
}

// Adapters that pile up are named, and those of a cache that does not grow are not.
func TestAdaptersPileUp(t *testing.T) {
	t.Parallel()
	extended(t)
	const says = "12 modules, acme-v0 to acme-v11, came one after another: 256.0 KiB each, 3.00 MiB in total; " +
		"of each of the 3 others like them (beta-v, delta-v, gamma-v) there is 1."
	for mode, want := range map[string]bool{"kept": true, "layers": true, "latest": false, "even": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := program{framework: torch27, args: []string{"adapters.py", mode}}.record(t)
			sentences := strings.Join(jsonReport(t, r.trace).Verdict.Sentences, "\n")
			if strings.Contains(sentences, says) != want ||
				strings.Contains(sentences, "came one after another") != want {
				t.Errorf("want it said: %v\n%s", want, sentences)
			}
		})
	}
}
