package oom

import (
	"strings"

	"memtrace/analyzer/report"
)

// Sentences on checkpointing: where a backward pass will come, and where nobody knows.
const (
	checkpointing      = " Gradient checkpointing (torch.utils.checkpoint) keeps only the inputs of the layers that it wraps, for one more forward pass."
	maybeCheckpointing = " In training, gradient checkpointing (torch.utils.checkpoint) keeps only the inputs of the layers that it wraps, for one more forward pass."
)

// ofLoss is said instead where most activations come from outside of all modules.
const ofLoss = " {loose} of them were made outside of all modules, as by a loss: gradient checkpointing of layers leaves those, a loss over parts of its input, one after another, needs less."

// fromOutside reports whether most activations come from outside of all modules. A program that has none in modules has
// other layers.
func fromOutside(c *report.OOMComposition) bool {
	inside := c.IterationFeatureBytes - min(c.IterationFeatureBytes, c.LooseFeatureBytes)
	return c.LooseFeatureBytes > inside && inside >= c.IterationFeatureBytes/(2*smallPart)
}

// Sentences on what is not there yet, and stays once it is: before the first backward pass, and before the first step
// of an optimizer. Which parameters are trained is not recorded.
const (
	maybeToCome = " In training, gradients and the optimizer's state, which stay, were still to come: with Adam, three times the trainable parameters in all."
	stateToCome = " No optimizer had made a step yet: its state, which stays, was still to come, with Adam twice the trainable parameters."
)

// isUntrained reports whether no optimizer has made a step, or begun to.
func isUntrained(e *report.OOMEvent) bool {
	return !e.Composition.Stepped && heldBy(e, optimizerState) == 0
}

// smallPart is the part, as a divisor, below which figures are a trifle.
const smallPart = 10

// halfTheBatch is what a smaller batch gives back: of a forward pass that was not over, only of what it had by then.
const (
	halfTheBatch      = " Half the batch gives back about {frees}."
	halfTheBatchSoFar = " Half the batch gives back about {frees} of what the iteration had so far."
)

// usualSize takes back that half the batch helps where it is this iteration's size that is not usual: how much it would
// have needed in the end is not known.
func usualSize(e *report.OOMEvent) {
	for i := range e.Advice {
		a := &e.Advice[i]
		if a.Rule != "activations" {
			continue
		}
		for _, half := range []string{halfTheBatch, halfTheBatchSoFar} {
			said := strings.Replace(half, "{frees}", report.SizeText(a.FreesBytes), 1)
			a.Text = strings.Replace(a.Text, said, "", 1)
		}
		a.FreesBytes = 0
	}
}

// sayActivations says of feature maps what the run does not do yet. Half the batch gives back half of what goes with
// its size, the inputs too.
func sayActivations(e *report.OOMEvent, f AdviceFacts, _ uint64) (uint64, string) {
	text, passing := "Activations (feature maps) of this iteration hold {held}, {share}.", heldBy(e, ofActivations)
	switch features := e.Composition.IterationFeatureBytes; {
	case features < passing/smallPart:
		return 0, "Gradients that the backward pass makes on its way (intermediate gradients) hold {held}, {share}. " +
			"A smaller batch needs fewer of them, and so does one in parts (with torch.func.vmap, by chunk_size)."
	case passing > 0:
		text = "Activations (feature maps) of this iteration and their gradients (" + report.SizeText(passing) +
			") hold {held}, {share}."
	}
	half := e.Composition.IterationBatchBytes / 2
	switch {
	case half < (e.Composition.IterationFeatureBytes+passing)/smallPart: // what goes with the batch is not known
		half = 0
	case passing > 0: // the backward pass has begun
		text += halfTheBatch
	default:
		text += halfTheBatchSoFar
	}
	differentiated := heldBy(e, gradients)+heldBy(e, ofActivations) > 0
	switch {
	case fromOutside(e.Composition):
		text += strings.Replace(ofLoss, "{loose}", report.SizeText(e.Composition.LooseFeatureBytes), 1)
	case f.Checkpointing:
	case e.Composition.Stepped || differentiated:
		text += checkpointing
	default:
		text += maybeCheckpointing
	}
	if p := &e.Composition.Parameters; !f.Autocast && !f.Nameless && !e.Seen.Autocast && p.Narrow() <= p.WideBytes {
		text += " Half precision (torch.autocast) halves the outputs of matrix multiplications and convolutions."
	}
	if isUntrained(e) && !differentiated && e.Composition.Passes <= 1 {
		text += maybeToCome
	}
	return half, text
}

// sayGradients is for a run that has not come to its first step. Afterwards gradients are dropped where parameters are.
func sayGradients(e *report.OOMEvent, _ AdviceFacts, _ uint64) (uint64, string) {
	if !isUntrained(e) {
		return 0, ""
	}
	return 0, "Gradients hold {held}, {share}." + stateToCome + " A smaller batch shrinks neither parameters nor gradients nor state; half precision, " +
		"an optimizer with 8-bit state and sharding (FSDP, ZeRO) do."
}

// Differentiated corrects what is said of checkpointing by what kept tensors at that moment: it gives back what graphs
// for a backward pass have saved, and nothing where there is none.
func Differentiated(e *report.OOMEvent, k *report.KeptBy) {
	if k == nil || k.Skipped != "" || k.Occasion == report.KeptWhileGrowing {
		return
	}
	remedied(e, k)
	if !k.Late && k.LeftOut == 0 {
		orphaned(e, k)
		replaced(e, k)
	}
	says := ""
	if found, _ := k.Graphs(); found {
		says = checkpointing
	} else if k.Late || k.LeftOut > 0 {
		return
	}
	for i := range e.Advice {
		text := &e.Advice[i].Text
		*text = strings.Replace(strings.Replace(*text, maybeCheckpointing, says, 1), checkpointing, says, 1)
		if says == "" {
			*text = strings.Replace(strings.Replace(*text, maybeToCome, "", 1), dropGraphs, dropLists, 1)
			outlived(e, &e.Advice[i], k)
			withoutGraphs(e, &e.Advice[i], k)
		}
	}
}

// sayCopies leaves the cache alone in training: the backward pass needs the copies, whether they are in it or not.
func sayCopies(e *report.OOMEvent, _ AdviceFacts, held uint64) (uint64, string) {
	text := "torch.autocast keeps {held} of copies of weights in half precision until its outermost block ends, {share}. "
	if e.Composition.Stepped || heldBy(e, gradients)+heldBy(e, ofActivations) > 0 {
		return held, text + "A model that is in half precision itself gives back about {frees}."
	}
	return held, text + "Where no backward pass needs them, torch.autocast(..., cache_enabled=False) gives back about {frees}; so does a model that is in " +
		"half precision itself."
}

// sayOptimizerState goes by how many bytes the states' elements have: where that is not known, it says for which the
// figure holds.
func sayOptimizerState(e *report.OOMEvent, _ AdviceFacts, held uint64) (uint64, string) {
	s := &e.Composition.OptimizerState
	text := "Optimizer state holds {held}, {share}. "
	if !e.Composition.Stepped && !isComplete(held, heldBy(e, gradients)) {
		text = "Optimizer state holds {held}, {share}, and the first step was still making it. "
	}
	frees := s.WideBytes/4*3 + s.TwoBytes/2
	switch {
	case frees+s.UnknownBytes < held/4:
		return held / 2, text + "Sharding it over two GPUs (FSDP, ZeRO) gives back about {frees}; keeping it on the host gives back all of it."
	case s.UnknownBytes > held/10:
		frees = held / 4 * 3
		text += "If it is in single precision, an"
	default:
		text += "An"
	}
	return frees, text + " optimizer with 8-bit state gives back about {frees}; sharding it over several GPUs (FSDP, ZeRO) or keeping it on the " +
		"host gives back more."
}

// isComplete reports whether states seem to be there for all parameters that have gradients: as many bytes once, as
// with momentum, or twice, as with Adam; to a fiftieth, since states have counters and odd sizes.
func isComplete(state, gradients uint64) bool {
	for _, times := range []uint64{1, 2} {
		if whole := times * gradients; whole > 0 && max(state, whole)-min(state, whole) <= whole/50 {
			return true
		}
	}
	return false
}

func sayParameters(e *report.OOMEvent, _ AdviceFacts, held uint64) (uint64, string) {
	p := &e.Composition.Parameters
	text := "Parameters hold {held}, {share}. "
	const more = " and, for fine-tuning, a quantized base model with LoRA."
	switch {
	case p.UnknownBytes > held/10:
		return held / 2, text + "Sharding over two GPUs (FSDP) gives back about {frees}; so does half precision, unless they are in it," + more
	case p.WideBytes < held/4:
		return held / 2, text + "Most are in half precision or smaller already. Sharding over two GPUs (FSDP) gives back about {frees}."
	}
	return p.WideBytes / 2, text + "Half precision gives back about {frees}; so do sharding over two GPUs (FSDP)" + more
}

// heldBy is what blocks of a category hold.
func heldBy(e *report.OOMEvent, category string) uint64 {
	for _, c := range e.Categories {
		if c.Category == category {
			return c.Bytes
		}
	}
	return 0
}
