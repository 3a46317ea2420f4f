package render

// totalNames are the accounts beside a framework's blocks in the order in which they are shown, and what people call
// them.
var totalNames = []struct{ account, name string }{
	{"driver", "device memory"},
	{"managed", "managed memory"},
	{"host", "pinned host memory"},
	{"registered", "registered host memory"},
	{"address", "reserved address space"},
	{"foreign", "opened from others"},
	{"graph", "graph nodes"},
	{"multicast", "multicast objects"},
	{"other", "of other kinds"},
}

// AccountName is what people call an account beside a framework's blocks, the account's own name if there is none.
func AccountName(account string) string {
	for _, n := range totalNames {
		if n.account == account {
			return n.name
		}
	}
	return account
}
