// Package diff compares two reports.
package diff
