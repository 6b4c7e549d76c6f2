package lastrun

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Zone is the local time of a process, so that another one can use it. The zero value
// is not known.
type Zone struct {
	// Name is the zone's in the system's database; Data is the zone itself where that has no
	// such name.
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// The machine's own zone, and how long a file of a zone may be.
const (
	localtime   = "/etc/localtime"
	longestZone = 64 << 10
)

// Here is the local time of this process, as Go finds it: by TZ or, without it, by the
// machine.
func Here() Zone {
	name, set := os.LookupEnv("TZ")
	if name = strings.TrimPrefix(name, ":"); !set {
		name = localtime
	}
	switch {
	case filepath.IsAbs(name):
		return fromFile(name)
	case name == "":
		return Zone{Name: "UTC"}
	}
	if _, err := time.LoadLocation(name); err != nil {
		return Zone{Name: "UTC"}
	}
	return Zone{Name: name}
}

// fromFile is the zone in a file, by its name where the file is one of the database's.
func fromFile(path string) Zone {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if _, name, is := strings.Cut(real, "/zoneinfo/"); is {
			if _, err := time.LoadLocation(name); err == nil {
				return Zone{Name: name}
			}
		}
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > longestZone {
		return Zone{Name: "UTC"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Zone{Name: "UTC"}
	}
	return Zone{Data: data}
}

// Location is the zone for package time; nil: it is not known, or is not in the database.
func (z Zone) Location() *time.Location {
	var at *time.Location
	var err error
	switch {
	case len(z.Data) > 0:
		at, err = time.LoadLocationFromTZData("the scheduler's", z.Data)
	case z.Name != "":
		at, err = time.LoadLocation(z.Name)
	}
	if err != nil {
		return nil
	}
	return at
}

// Same reports whether two zones are one, as far as their names or data say.
func (z Zone) Same(other Zone) bool {
	return z.Name == other.Name && bytes.Equal(z.Data, other.Data)
}

// Words is how people call the zone: by its name or, where it has none, by its letters now.
func (z Zone) Words(now time.Time) string {
	at := z.Location()
	if z.Name != "" || at == nil {
		return z.Name
	}
	return now.In(at).Format("MST")
}
