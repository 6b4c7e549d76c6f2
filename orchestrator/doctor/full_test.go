package doctor

import (
	"path/filepath"
	"testing"

	"heartbeat/config"
	"heartbeat/orchestrator/volume"
)

// TestFull: each file system once, only what is full, and nothing of what is missing.
func TestFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agents := []*config.Agent{{Name: "a", Dir: dir}, {Name: "b", Dir: dir}, {Name: "c", Dir: filepath.Join(dir, "missing")}}
	found := Full(agents, dir)
	all := ofVolume(volumeOf(dir))
	want := 0
	for _, f := range all {
		if IsFull(f) {
			want++
		}
	}
	if len(found) != want {
		t.Errorf("%+v of %+v", found, all)
	}
	for v, full := range map[Volume]bool{
		{Known: true, Volume: volume.Volume{Free: 1 << 20}}:                               true,
		{Known: true, Volume: volume.Volume{Free: 1 << 29}}:                               false,
		{Known: true, Volume: volume.Volume{Free: 1 << 40}}:                               false,
		{Known: true, Volume: volume.Volume{Free: 1 << 40, Files: 100_000, FreeFiles: 5}}: true,
		{}: false,
	} {
		is := false
		for _, f := range ofVolume(v) {
			is = is || IsFull(f)
		}
		if is != full {
			t.Errorf("%+v is full: %t", v, is)
		}
	}
}
