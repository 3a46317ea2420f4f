package tracefile

import (
	"errors"
	"io"
	"syscall"

	"memtrace/internal/cli"
	"memtrace/internal/sanitize"
)

// Shown is a verb's way through several traces: load reads one, while others are read, show writes what it found.
type Shown[T any] struct {
	Load func(path string) (T, error)
	Show func(w io.Writer, value T) error
	JSON bool
	Form sanitize.Form // of what show writes
}

// ToFile shows every trace that args name, in order, in one output. A trace that cannot be read does not prevent the
// others from being shown: the errors are returned together. In JSON, one file is its value, and several files or a
// folder are an array.
func (s Shown[T]) ToFile(c *cli.Console, args []string, path string, force bool) error {
	inputs, err := Expand(args)
	if err != nil {
		return err
	}
	list := jsonList{single: len(inputs) == 1 && !inputs[0].FromFolder}
	var problems []error
	err = c.WriteTo(path, force, s.Form, func(w io.Writer) error {
		shownAny := false
		err := InOrder(inputs, s.Load, func(in Input, value T, err error) error {
			if PassOver(c, in, err) {
				return nil
			}
			if err != nil {
				problems = append(problems, err)
				return nil
			}
			err = s.element(w, list, shownAny, value)
			shownAny = true
			return err
		})
		switch {
		case err != nil:
			return err
		case shownAny && s.JSON:
			return list.close(w)
		case !shownAny && problems == nil:
			return NoTraceError(args[0])
		case !shownAny:
			return errNothingShown
		}
		return nil
	})
	if errors.Is(err, errNothingShown) || errors.Is(err, syscall.EPIPE) && problems != nil {
		err = nil // problems are what is reported
	}
	return errors.Join(append(problems, err)...)
}

// Values shows what was read already, in JSON one value or an array.
func (s Shown[T]) Values(w io.Writer, values []T) error {
	list := jsonList{single: len(values) == 1}
	for i, value := range values {
		if err := s.element(w, list, i > 0, value); err != nil {
			return err
		}
	}
	if s.JSON {
		return list.close(w)
	}
	return nil
}

// errNothingShown keeps an output file from being made when there is nothing to put into it.
var errNothingShown = errors.New("nothing to show")

func (s Shown[T]) element(w io.Writer, list jsonList, follows bool, value T) error {
	switch {
	case s.JSON:
		if err := list.next(w, follows); err != nil {
			return err
		}
	case follows:
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return s.Show(w, value)
}

// jsonList writes the brackets and commas around values that write themselves.
type jsonList struct {
	single bool // one value, no array
}

func (l jsonList) next(w io.Writer, follows bool) error {
	if l.single {
		return nil
	}
	mark := "[\n"
	if follows {
		mark = ",\n"
	}
	_, err := io.WriteString(w, mark)
	return err
}

func (l jsonList) close(w io.Writer) error {
	if l.single {
		return nil
	}
	_, err := io.WriteString(w, "]\n")
	return err
}
