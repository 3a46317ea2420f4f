// Package exportcmd writes traces in other tools' formats, as the command requests: which format, where to, from which
// replay, and the notes on the file. The formats themselves are those of internal/export.
package exportcmd

import "memtrace/internal/cli"

// Exporter writes files and prints on a console what they hold.
type Exporter struct {
	*cli.Console
}
