// Package usageerr is about mistakes on the command line: errors that a pointer to the verb's help follows. It imports
// no package of the module and prints nothing.
package usageerr

import "fmt"

// Error is a mistake on the command line: it is followed by a pointer to the verb's help.
type Error struct {
	err error
}

// Error returns the text of the mistake, without the pointer to the help.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that Errorf formatted.
func (e *Error) Unwrap() error { return e.err }

// Errorf is fmt.Errorf for a mistake on the command line.
func Errorf(format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...)}
}
