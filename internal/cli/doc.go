// Package cli is what the verbs of the command share: arguments and flags with their completion and what they request
// of the analyzer, the three standard streams with the logger, progress and lines that keep to a terminal's width,
// errors of wrong use, help and manual pages. It knows no verb and reads no trace.
package cli
