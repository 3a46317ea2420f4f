// Package rulefile reads sets of rules that are written as TOML, and holds the sets that come with memtrace. The format
// is described in docs/rules.md.
package rulefile
