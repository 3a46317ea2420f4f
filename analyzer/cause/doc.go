// Package cause finds what a training program does that takes memory without need, by what the framework called its
// parameters: models that are there twice, and parts of a model that are differentiated though nobody trains them. It
// reads package report's values and follows no events.
package cause
