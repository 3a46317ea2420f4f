package callstack

import (
	"regexp"
)

var LineNumber = regexp.MustCompile(`:\d+( |$)`)

// WithoutLine drops the line from the key of a site, which another line in the same file changes.
func WithoutLine(key string) string {
	if at := LineNumber.FindStringSubmatchIndex(key); at != nil {
		return key[:at[0]] + key[at[2]:]
	}
	return key
}
