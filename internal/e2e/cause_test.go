//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// What nobody trains is told of where it is differentiated, and a second set of a model's parameters always.
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
