package series

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"heartbeat/hook/durable"
)

const (
	// measuredName is used in place of an agent's name. Its file has an empty point for
	// each slot in which the depths of the queues were measured and saved.
	measuredName = ".measured"
	// depthsName is the file in which a run that ends saves the depths of slots that are
	// not over. No other file has them.
	depthsName  = ".depths"
	depthsBytes = 8 << 20
)

// depth is the most that an agent's queue held in a slot. Without an agent it says that
// the depths were measured in the slot.
type depth struct {
	Slot   int64  `json:"slot"`
	Agent  string `json:"agent,omitempty"`
	Queued int64  `json:"queued,omitempty"`
}

// sample records how much the queues hold now.
func (r *Recorder) sample(all []Depth, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sampled[slotOf(now)] = true
	for _, d := range all {
		if d.Queued > 0 {
			p := r.tally.at(d.Agent, now)
			p.Queued = max(p.Queued, int64(d.Queued))
		}
	}
}

// measured returns a point for each slot in which the depths were measured. The caller
// holds r.mu.
func (r *Recorder) measured(from, to int64) (points []Point) {
	for slot := range r.sampled {
		if slot >= from && slot <= to {
			points = append(points, Point{At: startOf(slot)})
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	return points
}

// leave saves the depths that only this run knows, for the next one.
func (r *Recorder) leave() {
	var all []depth
	r.mu.Lock()
	for slot := range r.sampled {
		all = append(all, depth{Slot: slot})
	}
	for agent, slots := range r.tally.all {
		for slot, p := range slots {
			if p.Queued > 0 {
				all = append(all, depth{slot, agent, p.Queued})
			}
		}
	}
	r.mu.Unlock()
	data, err := json.Marshal(all)
	if err == nil && len(all) > 0 {
		var folder *durable.Folder
		if folder, err = durable.MakeBelow(r.stateDir, folderOf(r.stateDir)); err == nil {
			defer folder.Close()
			err = folder.Put(depthsName, data)
		}
	}
	if err != nil {
		r.log.Warn("cannot keep the depths of the queues", "err", err)
	}
}

// takeOver removes the file that the last run left, once this run has read it. If this run
// is killed, the next one must not take that file for all that is known about those slots.
func (r *Recorder) takeOver() {
	folder, err := durable.OpenBelow(r.stateDir, folderOf(r.stateDir))
	if err == nil {
		defer folder.Close()
		err = folder.Remove(depthsName)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("cannot remove the depths of the queues that the run before has left", "err", err)
	}
}

// left adds the depths that the last run left. If they cannot be read, they are unknown.
func left(stateDir string, t *tally, sampled map[int64]bool) {
	folder, err := durable.OpenBelow(stateDir, folderOf(stateDir))
	if err != nil {
		return
	}
	defer folder.Close()
	data, err := folder.Read(depthsName, depthsBytes)
	var all []depth
	if err != nil || json.Unmarshal(data, &all) != nil {
		return
	}
	for _, d := range all {
		if d.Agent == "" {
			sampled[d.Slot] = true
			continue
		}
		p := t.at(d.Agent, startOf(d.Slot))
		p.Queued = max(p.Queued, d.Queued)
	}
}
