package config

import (
	"path"
	"strings"
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
