package cause

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// frameworkNames are the display names of the adapters' keys.
var frameworkNames = map[string]string{"torch": "PyTorch", "mxnet": "MXNet", "jax": "JAX"}

// noteAdapters reports each requested framework adapter that is off, or that failed: its names or links are missing
// then.
func noteAdapters(_ *report.Summary, info trace.Info) string {
	var parts []string
	for key, value := range info {
		name, ok := strings.CutPrefix(key, "adapter.")
		if !ok {
			continue
		}
		framework, about, _ := strings.Cut(name, ".")
		if known, ok := frameworkNames[framework]; ok {
			framework = known
		}
		switch why, off := strings.CutPrefix(value, "off: "); {
		case about == "" && off:
			parts = append(parts, fmt.Sprintf("%s's memory has no names: %s.", framework, why))
		case about == "backward" && off:
			parts = append(parts, fmt.Sprintf("What %s's backward pass takes is not tied to its forward pass: %s.",
				framework, why))
		case about == "trouble":
			if n, err := strconv.ParseUint(value, 10, 64); err == nil && n > 0 {
				parts = append(parts, fmt.Sprintf("Some of %s's memory may lack its name: %s could not be asked.",
					framework, report.Count(n, "time it", "times it")))
			}
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
