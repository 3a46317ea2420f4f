package cli

import "fmt"

// UsageError is a mistake on the command line: it is followed by a pointer to the verb's help.
type UsageError struct {
	err error
}

// Error returns the text of the mistake, without the pointer to the help.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the error that UsageErrorf formatted.
func (e *UsageError) Unwrap() error { return e.err }

// UsageErrorf is fmt.Errorf for a mistake on the command line.
func UsageErrorf(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}
