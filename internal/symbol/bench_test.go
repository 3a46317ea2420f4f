package symbol

import (
	"debug/elf"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
)

// largeObject is the largest library of a framework that the tests of the command have fetched into the cache.
func largeObject(b *testing.B, name string) string {
	b.Helper()
	cache := os.Getenv("MEMTRACE_CACHE")
	if cache == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			b.Skip(err)
		}
		cache = filepath.Join(home, "memtrace")
	}
	found, _ := filepath.Glob(filepath.Join(cache, "venvs", "torch-*", "lib", "python*", "site-packages", "torch",
		"lib", name))
	if len(found) == 0 {
		b.Skipf("no %s in the cache of environments", name)
	}
	return found[0]
}

// someAddresses returns return addresses in functions that are chosen at random, always the same.
func someAddresses(b *testing.B, path string, base uint64, n int) []uint64 {
	b.Helper()
	im, err := openImage(path)
	if err != nil {
		b.Fatal(err)
	}
	defer im.close()
	table, err := im.readSymbols(elf.SHT_SYMTAB)
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewSource(1))
	addresses := make([]uint64, n)
	for i := range addresses {
		f := table.entries[random.Intn(len(table.entries))]
		addresses[i] = base + f.start + 1 + uint64(random.Int63n(int64(max(f.size, 1))))
	}
	return addresses
}

// BenchmarkLargeObject looks up 1,000 addresses of a large library: without a cache, and with the cache of the previous
// run.
func BenchmarkLargeObject(b *testing.B) {
	const base = 0x7f0000000000
	for _, name := range []string{"libtorch_cpu.so", "libtorch_cuda.so"} {
		path := largeObject(b, name)
		addresses := someAddresses(b, path, base, 1000)
		b.Run(name+"/first", func(b *testing.B) {
			for b.Loop() {
				resolverOf(b, path, base, Options{}).Warm(addresses)
			}
		})
		b.Run(name+"/second", func(b *testing.B) {
			o := Options{Cache: b.TempDir()}
			resolverOf(b, path, base, o).Warm(addresses)
			for b.Loop() {
				resolverOf(b, path, base, o).Warm(addresses)
			}
		})
	}
}
