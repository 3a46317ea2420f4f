// Package division divides what was held at one moment: by category, across two groupings, or inside of the one place
// that allocated most of it.
package division
