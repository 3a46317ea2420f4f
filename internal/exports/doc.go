// Package exports writes traces in other tools' formats, as the command asks for it: which format, where to, from which
// replay, and what people should know of the file. The formats themselves are those of analyzer/export.
package exports

import "memtrace/internal/console"

// Exporter writes files and says on a console what they hold.
type Exporter struct {
	*console.Console
}
