package tables

import (
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// Ranks reads which ranks a file of the table runs has, in ascending order.
func Ranks(file io.ReaderAt, size int64) (ranks []int32, err error) {
	defer func() {
		if fault := recover(); fault != nil { // of the decoder: a damaged file ends no export
			err = fmt.Errorf("no table of ranks: %v", fault)
		}
	}()
	rows, err := parquet.Read[struct {
		Rank int32 `parquet:"rank,delta"`
	}](file, size)
	if err != nil {
		return nil, fmt.Errorf("no table of ranks: %w", err)
	}
	for i := range rows {
		ranks = append(ranks, rows[i].Rank)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}
