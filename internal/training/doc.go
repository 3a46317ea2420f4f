// Package training divides a run into iterations, phases and parameters. Names often come after the memory that they
// name, so a trace is read ahead for them.
package training
