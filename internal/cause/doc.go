// Package cause explains the figures of a report: what a program does that takes memory without need, why memory was
// reserved and unused, whether memory grows without end, how the one place that allocated most of it divides, and where
// the report's limits are. It reads package report's values, the series of package profile and call stacks, and follows
// no events itself.
package cause
