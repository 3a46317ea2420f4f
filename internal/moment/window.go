package moment

import "fmt"

// CheckWindow refuses moments that no window begins or ends with, and two that are in the wrong order.
func CheckWindow(from, to At) error {
	if from.Kind == Peak || from.Kind == Exit {
		return fmt.Errorf("--from %s: no window begins there; "+
			"name mark:NAME, step:N, iteration:N, teardown, oom or a time since the start", from)
	}
	if to.Kind == Peak {
		return fmt.Errorf("--to %s: no window ends there; "+
			"name mark:NAME, step:N, iteration:N, teardown, oom, exit or a time since the start", to)
	}
	if from.Kind == Time && to.Kind == Time && from.Time > to.Time {
		return fmt.Errorf("--from %s comes after --to %s; exchange them", from, to)
	}
	if from.Kind == to.Kind && (from.Kind == Step || from.Kind == Iteration) && from.Step >= to.Step {
		return fmt.Errorf("--to %s does not come after --from %s; name a later moment, or exchange them", to, from)
	}
	return nil
}

// WindowWords describes the part of the run between two moments, "" for the whole run.
func WindowWords(from, to At) string {
	begin, end := from.String(), to.String()
	switch {
	case from.IsZero() && to.IsZero():
		return ""
	case from.IsZero():
		begin = "the beginning"
	case to.IsZero():
		end = "the end"
	}
	return "from " + begin + " to " + end
}
