-- What providers reported about prompts: what counted tokens are multiplied with, per model.

CREATE TABLE token_ratios (
    model        TEXT NOT NULL,              -- its configured name and the provider's
    counter      TEXT NOT NULL,              -- name and version
    reported     REAL NOT NULL,              -- tokens; older reports weigh less
    counted      REAL NOT NULL,              -- of the same prompts, weighed alike
    ratio_64ths  INTEGER NOT NULL,           -- in use
    reports      INTEGER NOT NULL,
    ignored      INTEGER NOT NULL,           -- reports too far off to be believed
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (model, counter)
) STRICT, WITHOUT ROWID;

-- The ratio of a run's prompt: written once, so that another attempt assembles the same bytes.
ALTER TABLE runs ADD COLUMN token_ratio_64ths INTEGER;
