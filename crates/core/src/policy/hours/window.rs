//! One window of the week, and how it is written.

use std::fmt;
use std::str::FromStr;

/// One window of the week; one that ends before it begins goes over midnight and belongs to the day it begins on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoursWindow {
    /// Bit 0 is Monday.
    pub days: u8,
    /// Minutes since midnight.
    pub from: u16,
    /// Minutes since midnight, 1440 for its end.
    pub to: u16,
}

/// A text that is no window, with what is wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHours {
    /// Not the form of one.
    #[error(
        "`{0}` is not a window of hours; expected something like \"mon-fri 09:00-18:00\", \"22:00-06:00\" or \"sat,sun\""
    )]
    Form(String),
    /// A day that is none.
    #[error("`{0}` is not a day; expected mon, tue, wed, thu, fri, sat or sun, as in \"mon-fri\" or \"sat,sun\"")]
    Day(String),
    /// A time that is none.
    #[error("`{0}` is not a time; expected 00:00 to 23:59, or 24:00 for the end of the day")]
    Time(String),
    /// It begins and ends at the same time.
    #[error("`{0}` begins and ends at the same time; write 00:00-24:00 for the whole day")]
    Empty(String),
}

const DAY: u16 = 24 * 60;
const EVERY_DAY: u8 = 0b111_1111;
const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl HoursWindow {
    /// Whether it holds on a day, Monday being 0, at a minute of it.
    pub(super) fn covers(&self, weekday: u8, minute: u16) -> bool {
        let holds_on = |day: u8| self.days >> day & 1 == 1;
        if self.from < self.to {
            return holds_on(weekday) && (self.from..self.to).contains(&minute);
        }
        (holds_on(weekday) && minute >= self.from) || (holds_on((weekday + 6) % 7) && minute < self.to)
    }
}

impl FromStr for HoursWindow {
    type Err = BadHours;

    fn from_str(text: &str) -> Result<HoursWindow, BadHours> {
        let form = || BadHours::Form(text.chars().take(80).collect());
        let lower = text.to_lowercase();
        // Spaces around signs say nothing: `mon - fri` is `mon-fri`.
        let tight = lower.split_whitespace().collect::<Vec<_>>().join(" ");
        let tight = tight.replace(" -", "-").replace("- ", "-").replace(" ,", ",").replace(", ", ",");
        let mut parts = tight.split(' ').filter(|part| !part.is_empty());
        let (first, second, None) = (parts.next().ok_or_else(form)?, parts.next(), parts.next()) else {
            return Err(form());
        };
        let is_time = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let (days, times) = match (second, is_time(first)) {
            (None, true) => (None, Some(first)),
            (None, false) => (Some(first), None),
            (Some(times), false) if is_time(times) => (Some(first), Some(times)),
            (Some(_), _) => return Err(form()),
        };
        let days = days.map_or(Ok(EVERY_DAY), days_of)?;
        let (from, to) = match times {
            None => (0, DAY),
            Some(times) => {
                let (from, to) = times.split_once('-').ok_or_else(form)?;
                (time_of(from, DAY - 1)?, time_of(to, DAY)?)
            }
        };
        if from == to {
            return Err(BadHours::Empty(text.chars().take(80).collect()));
        }
        Ok(HoursWindow { days, from, to })
    }
}

impl fmt::Display for HoursWindow {
    /// In the form that is read: `mon-fri 09:00-18:00`, days in the order of the week.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole_day = (self.from, self.to) == (0, DAY);
        if self.days != EVERY_DAY || is_whole_day {
            write_days(self.days, f)?;
            if is_whole_day {
                return Ok(());
            }
            f.write_str(" ")?;
        }
        let (from, to) = (self.from, self.to);
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

fn days_of(text: &str) -> Result<u8, BadHours> {
    text.split(',').try_fold(0, |days, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day_of(first)?, day_of(last)?);
        // `fri-mon` goes over the end of the week.
        let length = (last + 7 - first) % 7;
        Ok((0..=length).fold(days, |days, step| days | 1 << ((first + step) % 7)))
    })
}

fn day_of(text: &str) -> Result<u8, BadHours> {
    let is_meant = |name: &&str| **name == *text || name.get(..3) == Some(text);
    let place = NAMES.iter().position(is_meant);
    let place = place.and_then(|place| u8::try_from(place).ok());
    place.ok_or_else(|| BadHours::Day(text.chars().take(40).collect()))
}

/// `9`, `09`, `9:00` or `09:00`.
fn time_of(text: &str, last: u16) -> Result<u16, BadHours> {
    let number = |digits: &str| {
        let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|_| is_number)
    };
    let (hour, minute) = text.split_once(':').unwrap_or((text, "00"));
    let minute = number(minute).filter(|&m| minute.len() == 2 && m < 60);
    let time = number(hour).zip(minute).map(|(hour, minute)| hour * 60 + minute);
    time.filter(|&time| time <= last).ok_or_else(|| BadHours::Time(text.chars().take(40).collect()))
}

fn write_days(days: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut day = 0;
    let mut gap = "";
    while day < 7 {
        let length = (day..7).take_while(|&day| days >> day & 1 == 1).count();
        if let (Some(first), Some(last)) = (NAMES.get(day), NAMES.get((day + length).wrapping_sub(1))) {
            match length {
                0 => {}
                1 => write!(f, "{gap}{}", &first[..3])?,
                _ => write!(f, "{gap}{}-{}", &first[..3], &last[..3])?,
            }
        }
        gap = if length > 0 { "," } else { gap };
        day += length + 1;
    }
    Ok(())
}
