package diff

import (
	"cmp"
	"path"
	"slices"
	"time"

	"memtrace/analyzer/report"
)

// A folder may still have traces of an earlier run. Processes are of one run if the scheduler gave them the same job,
// if their launcher started as many ranks, and if a rank that is there twice ran at the same time.

// runKey tells runs apart by what all ranks of one have in common.
type runKey struct {
	job   string
	world int
	exe   string
}

func keyOf(p *report.Process) runKey { return runKey{p.Job, p.WorldSize, path.Base(p.Exe)} }

// oneRun keeps the processes of the run that has most of them, the latest of several such, and returns the others, too.
// Processes without a rank cannot be told apart, and are kept.
func oneRun(list []RankProcess) (run, others []RankProcess) {
	count, latest := map[runKey]int{}, map[runKey]string{}
	for i := range list {
		if p := list[i].process(); p.Rank != nil {
			key := keyOf(p)
			count[key]++
			latest[key] = max(latest[key], p.Started)
		}
	}
	var chosen runKey
	for key := range count {
		if cmp.Or(cmp.Compare(count[key], count[chosen]), cmp.Compare(latest[key], latest[chosen]),
			cmp.Compare(key.job, chosen.job), cmp.Compare(key.world, chosen.world),
			cmp.Compare(key.exe, chosen.exe)) > 0 {
			chosen = key
		}
	}
	for _, p := range list {
		if p.process().Rank == nil || keyOf(p.process()) == chosen {
			run = append(run, p)
		} else {
			others = append(others, p)
		}
	}
	run, earlier := sameTime(run)
	return run, append(others, earlier...)
}

// sameTime keeps, of the processes of each rank, those that ran at the same time as the latest one.
func sameTime(list []RankProcess) (run, earlier []RankProcess) {
	latest := map[int]time.Time{}
	for i := range list {
		if began, _, known := lifetime(list[i].process()); known {
			if rank := *list[i].process().Rank; began.After(latest[rank]) {
				latest[rank] = began
			}
		}
	}
	for _, p := range list {
		_, ended, known := lifetime(p.process())
		if known && ended.Before(latest[*p.process().Rank]) {
			earlier = append(earlier, p)
		} else {
			run = append(run, p)
		}
	}
	return run, earlier
}

// lifetime is when the process of a rank ran, as far as it was recorded.
func lifetime(p *report.Process) (began, ended time.Time, known bool) {
	began, err := time.Parse(time.RFC3339Nano, p.Started)
	if err != nil || p.Rank == nil {
		return began, ended, false
	}
	return began, began.Add(time.Duration(p.DurationNS)), true
}

// maxWorld bounds the ranks of which missing ones are named: a file may state any number.
const maxWorld = 1 << 20

// missing lists the ranks below world without a process.
func missing(list []RankProcess, world int) (ranks []int) {
	if world > maxWorld {
		return nil
	}
	seen := map[int]bool{}
	for i := range list {
		if p := list[i].process(); p.Rank != nil {
			seen[*p.Rank] = true
		}
	}
	for rank := range world {
		if !seen[rank] {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// worldOf is how many ranks the launcher started; 0 unknown.
func worldOf(list []RankProcess) (world int) {
	for i := range list {
		if p := list[i].process(); p.Rank != nil {
			world = max(world, p.WorldSize)
		}
	}
	return world
}

// RunFaults is what keeps processes from being all ranks of one run, each once.
type RunFaults struct {
	Unranked []RankProcess // without a rank
	Others   []RankProcess // of another run than most, or that were over before their rank began once more
	Twice    []int         // ranks of several processes
	Missing  []int         // ranks of no process: below the launcher's number, or else below the highest rank
}

// FaultsOf looks for them.
func FaultsOf(list []RankProcess) (f RunFaults) {
	var ranked []RankProcess
	for _, p := range list {
		if p.process().Rank == nil {
			f.Unranked = append(f.Unranked, p)
		} else {
			ranked = append(ranked, p)
		}
	}
	ranked, f.Others = oneRun(ranked)
	f.Twice = twice(ranked)
	world := worldOf(ranked)
	for i := range ranked {
		world = max(world, *ranked[i].process().Rank+1)
	}
	f.Missing = missing(ranked, min(world, maxWorld))
	return f
}

// twice lists the ranks of several processes.
func twice(list []RankProcess) (ranks []int) {
	count := map[int]int{}
	for i := range list {
		if rank := list[i].process().Rank; rank != nil {
			if count[*rank]++; count[*rank] == 2 {
				ranks = append(ranks, *rank)
			}
		}
	}
	slices.Sort(ranks)
	return ranks
}

// distinct keeps the first of several files of a process, in the order of their paths, and returns the others, too.
func distinct(list []RankProcess) (first, again []RankProcess) {
	var seen report.Recordings
	for _, p := range list {
		if seen.Seen(p.Path, p.process()) == "" {
			first = append(first, p)
		} else {
			again = append(again, p)
		}
	}
	return first, again
}
