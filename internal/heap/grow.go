package heap

// MaxSlots is more than there are slots of devices, whose ordinals have 16 bits: the bound on those read back.
const MaxSlots = 1<<15 + 1

// Slot returns the item of a slice by index, growing the slice as needed.
func Slot[T any](list *[]T, i int) *T {
	if i >= len(*list) {
		Extend(list, i+1)
	}
	return &(*list)[i]
}

// Extend is apart from at so that at can be inlined.
func Extend[T any](list *[]T, n int) { *list = append(*list, make([]T, n-len(*list))...) }
