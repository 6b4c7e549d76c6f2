package config

import (
	"path"
	"strings"
	"sync"
	"time"
)

// zones are the time zones that most people live in, for hints. Any other name is
// looked up in the system's database.
var zones = strings.Fields(`UTC Local
	Europe/Amsterdam Europe/Athens Europe/Belgrade Europe/Berlin Europe/Brussels Europe/Bucharest Europe/Budapest Europe/Copenhagen
	Europe/Dublin Europe/Helsinki Europe/Istanbul Europe/Kyiv Europe/Lisbon Europe/London Europe/Luxembourg Europe/Madrid Europe/Moscow
	Europe/Oslo Europe/Paris Europe/Prague Europe/Riga Europe/Rome Europe/Sofia Europe/Stockholm Europe/Tallinn Europe/Vienna
	Europe/Vilnius Europe/Warsaw Europe/Zagreb Europe/Zurich
	America/Anchorage America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago America/Denver America/Halifax
	America/Lima America/Los_Angeles America/Mexico_City America/Montevideo America/New_York America/Phoenix America/Santiago
	America/Sao_Paulo America/Toronto America/Vancouver
	Africa/Algiers Africa/Cairo Africa/Casablanca Africa/Johannesburg Africa/Lagos Africa/Nairobi
	Asia/Almaty Asia/Baghdad Asia/Bangkok Asia/Dhaka Asia/Dubai Asia/Ho_Chi_Minh Asia/Hong_Kong Asia/Jakarta Asia/Jerusalem Asia/Karachi
	Asia/Kathmandu Asia/Kolkata Asia/Kuala_Lumpur Asia/Manila Asia/Riyadh Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Taipei
	Asia/Tashkent Asia/Tehran Asia/Tokyo
	Australia/Adelaide Australia/Brisbane Australia/Melbourne Australia/Perth Australia/Sydney Pacific/Auckland Pacific/Honolulu`)

// called maps common names and abbreviations to time zones.
var called = map[string]string{
	"wien": "Europe/Vienna", "praha": "Europe/Prague", "moskva": "Europe/Moscow", "lisboa": "Europe/Lisbon", "warszawa": "Europe/Warsaw",
	"kobenhavn": "Europe/Copenhagen", "kiev": "Europe/Kyiv", "beograd": "Europe/Belgrade", "bruxelles": "Europe/Brussels",
	"munich": "Europe/Berlin", "hamburg": "Europe/Berlin", "milan": "Europe/Rome", "milano": "Europe/Rome", "geneva": "Europe/Zurich",
	"boston": "America/New_York", "washington": "America/New_York", "miami": "America/New_York", "sanfrancisco": "America/Los_Angeles",
	"seattle": "America/Los_Angeles", "dallas": "America/Chicago", "houston": "America/Chicago", "beijing": "Asia/Shanghai",
	"mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata",
	"pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "edt": "America/New_York", "cst": "America/Chicago", "cdt": "America/Chicago",
	"mdt": "America/Denver", "bst": "Europe/London", "cest": "Europe/Berlin", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "utc+0": "UTC", "z": "UTC",
}

// zoneHint suggests which time zone was probably meant.
func zoneHint(name string) string {
	city := simplify(path.Base(name))
	meant := called[city]
	for _, zone := range zones {
		if simplify(path.Base(zone)) == city {
			meant = zone
		}
	}
	if meant == "" {
		meant = oneLetterOff(name)
	}
	if near := Nearest(name, zones); meant == "" && near != nil {
		meant = near[0]
	}
	for _, zone := range zones {
		if meant == "" && Nearest(path.Base(name), []string{path.Base(zone)}) != nil {
			meant = zone
		}
	}
	if meant == "" {
		return "a name such as Europe/Rome, UTC or Local"
	}
	return "did you mean " + meant + "?"
}

// longestZone is longer than any time zone's name.
const longestZone = 40

// oneLetterOff returns the time zone of the system's database of which a name differs in
// one letter, or only in upper and lower case; "" if there is none. The database can be
// asked for a name, and not for all of them.
func oneLetterOff(name string) string {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > longestZone || strings.ContainsFunc(name, func(r rune) bool { return r > 'z' }) {
		return ""
	}
	if zone, looked := lettersOff.Load(name); looked {
		return zone.(string)
	}
	zone := nearZone(name)
	if other := titled(name); zone == "" && other != name {
		zone = nearZone(other)
	}
	lettersOff.Store(name, zone)
	return zone
}

// lettersOff are the answers of oneLetterOff, by names: the database is asked a thousand
// times for each, and the same mistake may be made for each of 10,000 agents.
var lettersOff sync.Map

// nearZone is the zone with a name, or with one that differs in a letter.
func nearZone(name string) string {
	known := func(name string) bool {
		_, err := time.LoadLocation(name)
		return err == nil && name != "" && path.Clean(name) == name
	}
	if known(name) {
		return name
	}
	const letters = "abcdefghijklmnopqrstuvwxyz_/"
	for i := range len(name) + 1 {
		before, behind := name[:i], name[i:]
		if len(behind) > 1 && known(before+behind[1:2]+behind[:1]+behind[2:]) {
			return before + behind[1:2] + behind[:1] + behind[2:]
		}
		if len(behind) > 0 && known(before+behind[1:]) {
			return before + behind[1:]
		}
		for _, letter := range letters {
			if known(before + string(letter) + behind) {
				return before + string(letter) + behind
			}
			if len(behind) > 0 && known(before+string(letter)+behind[1:]) {
				return before + string(letter) + behind[1:]
			}
		}
	}
	return ""
}

// titled is a name with each of its words as zones are written.
func titled(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '_' })
	if len(words) == 0 {
		return name
	}
	text, rest := "", name
	for _, word := range words {
		at := strings.Index(rest, word)
		text += rest[:at] + strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
		rest = rest[at+len(word):]
	}
	return text + rest
}
