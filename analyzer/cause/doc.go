// Package cause finds what a program does that takes memory without need: by what the framework called its parameters,
// models that are there twice and parts of a model that are differentiated though nobody trains them; by what its
// allocator held at the peak, why memory was reserved and unused. It reads package report's values and follows no
// events.
package cause
