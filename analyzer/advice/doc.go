// Package advice says what to do about memory that ran out, and what each suggestion would give back.
package advice
