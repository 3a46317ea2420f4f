// Package tables writes what traces say as tables of Parquet, one file for each table: the runs, what held memory at
// their peaks and ends by owner, their iterations, memory over time, and on request every block and every event. The
// rows of several ranks stand in one file, in the order of the ranks.
//
// Rules that hold the tables together: sizes are bytes and times nanoseconds since the beginning of the rank's trace,
// as in the report, whose figures the sums of the tables are to the byte. All integers are signed, since engines turn
// unsigned ones of 64 bits into decimals (Spark 4.3.0 does). Ids of stacks and frames are made of names, so that they
// are the same in every rank and every run.
package tables
