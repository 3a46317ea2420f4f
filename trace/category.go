package trace

// Category says what a framework's own bookkeeping takes an address for. Numbers are part of the trace format: append
// only.
type Category uint8

// The categories. Bytes of a layer's parameters, their gradients and what an optimizer keeps for them are named by the
// framework's qualified name of the parameter.
const (
	CategoryNone      Category = 0
	CategoryModule    Category = 1 // no memory: the object whose method a Python frame runs
	CategoryParameter Category = 2
	CategoryBuffer    Category = 3 // of a module, without a gradient
	CategoryGradient  Category = 4 // of a parameter
	CategoryOptimizer Category = 5 // the name is that of the state, a colon, and the parameter's
	CategoryStep      Category = 6 // no memory: an optimizer finished a step
	CategoryData      Category = 7 // what goes into a model or comes out of it
	CategoryFree      Category = 8 // nothing from now on: what the block held is gone, its allocator keeps the block for something else

	categoryCount = 9
)

var categoryNames = [categoryCount]string{"none", "module", "parameter", "buffer", "gradient", "optimizer", "step", "data", "free"}

// String returns the category's name as it appears in the text form of a trace.
func (c Category) String() string {
	if int(c) < len(categoryNames) {
		return categoryNames[c]
	}
	return "unknown"
}

// ParseCategory is the inverse of String; ok is false for a name that no category has.
func ParseCategory(name string) (c Category, ok bool) {
	for i, n := range categoryNames {
		if n == name {
			return Category(i), true
		}
	}
	return CategoryNone, false
}
