-- What was found of secrets and personal data: kinds, places and masked hints, as JSON.
ALTER TABLE events ADD COLUMN dlp TEXT;
CREATE INDEX events_dlp ON events (at) WHERE dlp IS NOT NULL;
