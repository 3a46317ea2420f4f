// Package diff says what two reports differ in.
package diff
