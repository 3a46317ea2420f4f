// Package version holds the one version number of the library and the command, which are always built and installed
// together.
package version

// String is the version; releases set it with -ldflags -X.
var String = "0.1.0-dev"
