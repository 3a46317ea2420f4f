package layout

// Account is one of the accounts other than a framework's blocks, with its displayed name.
type Account struct{ Key, Name string }

var accounts = []Account{
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

// Accounts lists the accounts other than a framework's blocks, in the order in which they are shown.
func Accounts() []Account { return accounts }

// AccountName is the displayed name of an account other than a framework's blocks, the account's own name if there is
// none.
func AccountName(account string) string {
	for _, a := range accounts {
		if a.Key == account {
			return a.Name
		}
	}
	return account
}
