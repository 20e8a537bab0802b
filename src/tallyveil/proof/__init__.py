"""From a matrix of doubles to integers proved private: repair, round, check, write down."""
