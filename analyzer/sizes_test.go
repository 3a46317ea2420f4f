package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
)

// TestSizes compares requested and actual sizes in short histories with numbers worked out by hand.
func TestSizes(t *testing.T) {
	const page = 2 * mib
	d, a := cuda.MemoryDevice, cuda.MemoryAsync
	tests := []struct {
		name         string
		story        *story
		atPeak, rest report.SizesAt
	}{
		{"one byte takes 512, and a page", (&story{}).alloc(d, page, 1),
			report.SizesAt{RequestedBytes: 1, RoundedBytes: 512, PageBytes: page},
			report.SizesAt{RequestedBytes: 1, RoundedBytes: 512, PageBytes: page}},
		{"two blocks on one page", (&story{}).alloc(d, page, 512).alloc(d, page+512, 512).free(d, page),
			report.SizesAt{RequestedBytes: 1024, RoundedBytes: 1024, PageBytes: page},
			report.SizesAt{RequestedBytes: 512, RoundedBytes: 512, PageBytes: page}},
		{"across a border", (&story{}).alloc(d, 2*page-512, 1024).free(d, 2*page-512),
			report.SizesAt{RequestedBytes: 1024, RoundedBytes: 1024, PageBytes: 2 * page}, report.SizesAt{}},
		{"whole pages", (&story{}).alloc(d, page, 3*page),
			report.SizesAt{RequestedBytes: 3 * page, RoundedBytes: 3 * page, PageBytes: 3 * page},
			report.SizesAt{RequestedBytes: 3 * page, RoundedBytes: 3 * page, PageBytes: 3 * page}},
		{"whole pages and a bit", (&story{}).alloc(d, page, 2*page+1).alloc(d, 3*page+512, 1),
			report.SizesAt{RequestedBytes: 2*page + 2, RoundedBytes: 2*page + 1024, PageBytes: 3 * page},
			report.SizesAt{RequestedBytes: 2*page + 2, RoundedBytes: 2*page + 1024, PageBytes: 3 * page}},
		{"an array's handle is no address", (&story{}).alloc(cuda.MemoryArray, 0x77, 1000),
			report.SizesAt{RequestedBytes: 1000, RoundedBytes: 1024, PageBytes: 1024},
			report.SizesAt{RequestedBytes: 1000, RoundedBytes: 1024, PageBytes: 1024}},
		{"managed memory occupies no device", (&story{}).alloc(cuda.MemoryManaged, page, 1000), report.SizesAt{},
			report.SizesAt{}},
		{"a pool keeps what was freed", (&story{}).alloc(a, page, 1000).reserve(cuda.ObjectPool, 0, 32*mib).free(a,
			page),
			report.SizesAt{RequestedBytes: 1000, RoundedBytes: 1000, PageBytes: 1000},
			report.SizesAt{PoolReservedBytes: 32 * mib, PoolIdleBytes: 32 * mib}},
		{"known before the peak", (&story{}).reserve(cuda.ObjectPool, 0, 32*mib).alloc(a, page,
			1000).reserve(cuda.ObjectPool, 0, 64*mib).
			reserve(cuda.ObjectGraphPool, 0, 5*mib),
			report.SizesAt{RequestedBytes: 1000, RoundedBytes: 1000, PageBytes: 1000, PoolReservedBytes: 32 * mib,
				PoolIdleBytes: 32*mib - 1000},
			report.SizesAt{RequestedBytes: 1000, RoundedBytes: 1000, PageBytes: 1000, PoolReservedBytes: 64 * mib,
				PoolIdleBytes: 64*mib - 1000, GraphPoolBytes: 5 * mib}},
		{"an old word on a pool", (&story{}).reserve(cuda.ObjectPool, 0, 10).alloc(a, page, 50),
			report.SizesAt{RequestedBytes: 50, RoundedBytes: 50, PageBytes: 50, PoolReservedBytes: 10},
			report.SizesAt{RequestedBytes: 50, RoundedBytes: 50, PageBytes: 50, PoolReservedBytes: 10}},
		{"two pools, one destroyed", (&story{}).reserve(cuda.ObjectPool, 0, 10).reserve(cuda.ObjectPool, 9,
			20).destroy(cuda.ObjectPool, 9), report.SizesAt{},
			report.SizesAt{PoolReservedBytes: 10, PoolIdleBytes: 10}},
		{"a late word", (&story{}).reserve(cuda.ObjectPool, 0, 10).reserve(cuda.ObjectPool, 0, 20).late(1),
			report.SizesAt{}, report.SizesAt{PoolReservedBytes: 20, PoolIdleBytes: 20}},
		{"a late word on a pool that has gone", (&story{}).reserve(cuda.ObjectPool, 9, 10).destroy(cuda.ObjectPool,
			9).late(1), report.SizesAt{}, report.SizesAt{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.story.summary(t, Options{}).Devices[0].Sizes
			if got.AtPeak != test.atPeak {
				t.Errorf("at the peak %+v\nwant %+v", got.AtPeak, test.atPeak)
			}
			if got.AtEnd != test.rest {
				t.Errorf("at the end %+v\nwant %+v", got.AtEnd, test.rest)
			}
		})
	}
}

// TestSizesIgnoreFilters: a device's memory is its memory whoever is asked about.
func TestSizesIgnoreFilters(t *testing.T) {
	s := (&story{}).alloc(cuda.MemoryDevice, 0x200000, 100).summary(t, Options{Tag: "model"})
	if v := s.Devices[0].Sizes.AtPeak; v.RequestedBytes != 100 || s.Driver.PeakBytes != 0 {
		t.Errorf("sizes %+v, driver %+v", v, s.Driver)
	}
}
