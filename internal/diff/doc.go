// Package diff compares two reports, and the processes of one run with each other.
package diff
